//! Exactly one autoscaler is in charge. Where another one shall decide, the old one goes first, and the new one comes when it is gone:
//! KEDA refuses a ScaledObject while another autoscaler has the workload, and two would pull at one number. Pure.

use crate::autoscaler::Scaling;

/// Which autoscalers exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Existing {
    /// Our HorizontalPodAutoscaler.
    pub hpa: bool,
    /// Our ScaledObject.
    pub scaled_object: bool,
    /// The HorizontalPodAutoscaler that KEDA made of it.
    pub hpa_of_keda: bool,
    /// KEDA itself: whether its kind is installed.
    pub keda: bool,
}

/// Which autoscaler there shall be now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// None: nobody shall decide, or another one has to go first.
    Nobody,
    /// Our HorizontalPodAutoscaler.
    Hpa,
    /// Our ScaledObject.
    ScaledObject,
}

impl Turn {
    /// Whose turn it is.
    pub fn of(scaling: &Scaling, existing: Existing) -> Self {
        match scaling {
            _ if existing.superseded(scaling).is_some() => Self::Nobody,
            Scaling::Hpa(_) => Self::Hpa,
            Scaling::Keda(_) if existing.keda => Self::ScaledObject,
            // Until KEDA is installed, the one at work stays.
            Scaling::Keda(_) if existing.hpa => Self::Hpa,
            _ => Self::Nobody,
        }
    }
}

impl Existing {
    /// What of this object has to go, because another one shall decide, or nobody; none if nothing has.
    pub fn superseded(self, scaling: &Scaling) -> Option<&'static str> {
        let of_keda = match self.scaled_object {
            true => Some("ScaledObject"),
            false => self.hpa_of_keda.then_some("HorizontalPodAutoscaler of KEDA"),
        };
        let of_ours = self.hpa.then_some("HorizontalPodAutoscaler");
        match scaling {
            Scaling::Hpa(_) => of_keda,
            Scaling::Keda(_) => of_ours.filter(|_| self.keda),
            Scaling::Fixed(_) | Scaling::External { .. } => of_keda.or(of_ours),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscaler::Bounds;

    #[test]
    fn the_old_one_goes_before_the_new_one_comes() {
        let bounds = Bounds { min: 1, max: 2 };
        let (hpa, keda) = (Scaling::Hpa(bounds), Scaling::Keda(bounds));
        let none = Existing { keda: true, ..Existing::default() };
        let without_keda = Existing::default();
        let cases = [
            (&hpa, none, Turn::Hpa),
            (&hpa, Existing { hpa: true, ..none }, Turn::Hpa),
            (&hpa, Existing { scaled_object: true, hpa_of_keda: true, ..none }, Turn::Nobody),
            (&hpa, Existing { hpa_of_keda: true, ..none }, Turn::Nobody),
            (&keda, none, Turn::ScaledObject),
            (&keda, Existing { scaled_object: true, hpa_of_keda: true, ..none }, Turn::ScaledObject),
            (&keda, Existing { hpa: true, ..none }, Turn::Nobody),
            (&keda, Existing { hpa: true, ..without_keda }, Turn::Hpa),
            (&keda, without_keda, Turn::Nobody),
            (&Scaling::Fixed(2), Existing { hpa: true, ..none }, Turn::Nobody),
            (&Scaling::External { from_zero: false }, none, Turn::Nobody),
        ];
        for (scaling, existing, expected) in cases {
            assert_eq!(Turn::of(scaling, existing), expected, "{scaling:?} {existing:?}");
        }
    }
}
