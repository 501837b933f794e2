//! The types of GPUs that are known without configuration, and the names that GPU feature discovery gives them: other drivers, other
//! forms and other memory sizes of one type have other names.

/// Each type with its names.
const TYPES: &[(&str, &[&str])] = &[
    (
        "A100",
        &[
            "NVIDIA-A100-SXM4-80GB",
            "NVIDIA-A100-SXM4-40GB",
            "NVIDIA-A100-80GB-PCIe",
            "NVIDIA-A100-PCIE-40GB",
            "NVIDIA-A100-SXM-64GB",
            "A100-SXM4-80GB",
            "A100-SXM4-40GB",
            "A100-PCIE-40GB",
        ],
    ),
    ("H100", &["NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe", "NVIDIA-H100-NVL", "NVIDIA-H100-SXM5-80GB"]),
    ("H200", &["NVIDIA-H200", "NVIDIA-H200-NVL"]),
    ("B200", &["NVIDIA-B200"]),
    ("GH200", &["NVIDIA-GH200-480GB", "NVIDIA-GH200-144G-HBM3e"]),
    ("GB200", &["NVIDIA-GB200"]),
    ("L4", &["NVIDIA-L4"]),
    ("L40", &["NVIDIA-L40"]),
    ("L40S", &["NVIDIA-L40S"]),
    ("A10", &["NVIDIA-A10"]),
    ("A10G", &["NVIDIA-A10G"]),
    ("A40", &["NVIDIA-A40"]),
    ("T4", &["Tesla-T4", "NVIDIA-T4"]),
    ("V100", &["Tesla-V100-SXM2-16GB", "Tesla-V100-SXM2-32GB", "Tesla-V100-PCIE-16GB", "Tesla-V100-PCIE-32GB"]),
];

/// The names of a type; none for one that is not known.
pub fn products(gpu_type: &str) -> Option<&'static [&'static str]> {
    TYPES.iter().find(|(known, _)| *known == gpu_type).map(|(_, products)| *products)
}
