//! Over how many GPUs and nodes one server is spread: tensors over the GPUs of a stage, stages of a pipeline one after the other, and
//! both over as few nodes as hold them. Pure.

/// Whether a server may be more than one Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// It is one Pod, whatever its GPUs.
    OneNode,
    /// It is one Pod on each of as many nodes as hold its GPUs.
    Nodes {
        /// How many stages its layers are cut into.
        pipeline: u32,
        /// How many GPUs a node has; none for what the configuration says.
        gpus_per_node: Option<u32>,
    },
}

/// How one server is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallelism {
    /// Over how many GPUs each tensor is spread; 0 for a server without GPUs.
    pub tensor: u32,
    /// How many stages the layers are cut into.
    pub pipeline: u32,
    /// On how many nodes, with as many GPUs on each.
    pub nodes: u32,
}

impl Parallelism {
    /// How a server with so many GPUs for each tensor is spread, on nodes with so many GPUs unless it is said otherwise.
    pub fn of(spread: Spread, tensor: u32, per_node: u32) -> Self {
        let Spread::Nodes { pipeline, gpus_per_node } = spread else {
            return Self { tensor, pipeline: 1, nodes: 1 };
        };
        let per_node = gpus_per_node.unwrap_or(per_node).max(1);
        let (tensor, pipeline) = (if pipeline > 1 { tensor.max(1) } else { tensor }, pipeline.max(1));
        Self { tensor, pipeline, nodes: nodes(tensor, pipeline, per_node) }
    }

    /// How many GPUs each Pod has.
    pub fn gpus_per_pod(&self) -> u32 {
        self.gpus() / self.nodes
    }

    /// How many GPUs the server has.
    pub fn gpus(&self) -> u32 {
        self.tensor.saturating_mul(self.pipeline)
    }

    /// Whether the server is a group of Pods.
    pub fn is_multi_node(&self) -> bool {
        self.nodes > 1
    }
}

/// The fewest nodes with equal shares of at most so many GPUs. The GPUs of a stage exchange much, so a stage that fits on a node stays on
/// one.
fn nodes(tensor: u32, pipeline: u32, per_node: u32) -> u32 {
    let all = tensor.saturating_mul(pipeline);
    if all <= per_node {
        return 1;
    }
    let parts = if tensor <= per_node { pipeline } else { all };
    let fits = |nodes: &u32| parts.is_multiple_of(*nodes) && all / nodes <= per_node;
    (1..=parts).find(fits).unwrap_or(parts)
}

#[cfg(test)]
mod tests {
    use super::nodes;

    #[test]
    fn a_server_is_spread_over_as_few_nodes_as_hold_it() {
        // Tensor, pipeline, GPUs of a node, nodes.
        let cases = [
            (0, 1, 8, 1),
            (8, 1, 8, 1),
            (16, 1, 8, 2),
            (8, 2, 8, 2),
            (4, 2, 8, 1),
            (4, 4, 8, 2),
            // Two stages would fit on a node, but three do not split into equal shares.
            (4, 3, 8, 3),
            (12, 1, 8, 2),
            (5, 1, 4, 5),
            (2, 8, 1, 16),
        ];
        for (tensor, pipeline, per_node, expected) in cases {
            assert_eq!(nodes(tensor, pipeline, per_node), expected, "{tensor} x {pipeline} on nodes of {per_node}");
        }
    }
}
