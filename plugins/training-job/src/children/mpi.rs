//! What an MPI job has besides Pods: the list of hosts, the SSH keys by which the launcher starts processes on the workers, and the
//! variables by which `mpirun` finds both. The keys are in a Secret of the user's, which nothing here reads: see decision 19.

use super::labels;
use crate::api::{Mpi, MpiImplementation, ReplicaType};
use crate::job::{Job, ReplicaId};
use pilothouse_pods::variable::variable;
use pilothouse_pods::volumes::Volumes;
use serde_json::{Value, json};

/// Where the list of hosts is mounted.
const DIRECTORY: &str = "/etc/mpi";

/// The key of the ConfigMap, and the name of the file.
const HOSTFILE: &str = "hostfile";

/// Where `ssh` looks for keys if the processes run as root.
const ROOT_SSH: &str = "/root/.ssh";

/// What workers run unless their role has a command.
const SSHD: &str = "/usr/sbin/sshd";

/// Without these, Open MPI 4 and 5 start nothing as root, which is who most images run as.
const AS_ROOT: [&str; 4] = [
    "OMPI_ALLOW_RUN_AS_ROOT",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    "PRTE_ALLOW_RUN_AS_ROOT",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
];

/// A Pod runs before its `sshd` listens, and an entry point that makes keys on a slow node takes a while: `ssh` tries each host so many
/// times, with a second in between. And it knows no key of a host beforehand: a Pod makes its own.
const SSH_OPTIONS: &str = "-o ConnectionAttempts=120 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null";

/// The kubelet lets everybody write to the folder of a Secret, though it is mounted for reading only, and `sshd` would take no key from it.
const SSHD_OPTION: &str = "StrictModes=no";

/// The command of a worker, which waits for the launcher.
pub fn worker_command(job: &Job<'_>) -> Vec<String> {
    let port = job.spec.port.map(|port| ["-p".to_owned(), port.to_string()]);
    [SSHD, "-De", "-o", SSHD_OPTION].map(str::to_owned).into_iter().chain(port.into_iter().flatten()).collect()
}

/// The variables of a replica. Only the launcher starts processes.
pub fn variables(job: &Job<'_>, replica: ReplicaId) -> Vec<Value> {
    if replica.replica_type != ReplicaType::Launcher {
        return Vec::new();
    }
    let (file, options, slots) = (format!("{DIRECTORY}/{HOSTFILE}"), ssh_options(job), slots(job).to_string());
    let of_implementation: &[(&str, &str)] = match implementation(job) {
        // The first four are of Open MPI 4, the others of Open MPI 5.
        MpiImplementation::OpenMpi => &[
            ("OMPI_MCA_orte_default_hostfile", &file),
            ("OMPI_MCA_orte_keep_fqdn_hostnames", "true"),
            ("OMPI_MCA_orte_set_default_slots", &slots),
            ("OMPI_MCA_plm_rsh_args", &options),
            ("PRTE_MCA_prte_default_hostfile", &file),
            ("PRTE_MCA_prte_keep_fqdn_hostnames", "true"),
            ("PRTE_MCA_plm_ssh_args", &options),
        ],
        MpiImplementation::Intel => &[
            ("I_MPI_HYDRA_HOST_FILE", &file),
            ("I_MPI_PERHOST", &slots),
            ("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", &options),
        ],
        MpiImplementation::Mpich => &[("HYDRA_HOST_FILE", &file), ("HYDRA_LAUNCH_EXTRA_ARGS", &options)],
    };
    let as_root: &[&str] = match implementation(job) {
        MpiImplementation::OpenMpi if job.spec.mpi.as_ref().is_some_and(is_root) => &AS_ROOT,
        _ => &[],
    };
    let mut variables: Vec<_> = of_implementation.iter().map(|(name, value)| variable(name, value)).collect();
    variables.extend(as_root.iter().map(|name| variable(name, "1")));
    // Some container runtimes show all GPUs of a node to an image that asks for them by a variable.
    if job.gpus(ReplicaType::Launcher) == 0 {
        variables.push(variable("NVIDIA_VISIBLE_DEVICES", ""));
    }
    variables
}

/// The ConfigMap with the list of hosts, if the job is one of MPI.
pub fn hostfile(job: &Job<'_>) -> Option<Value> {
    job.spec.mpi.as_ref()?;
    let slots = slots(job);
    let line = |index| {
        let host = job.host_name(ReplicaId::worker(index));
        match implementation(job) {
            MpiImplementation::OpenMpi => format!("{host} slots={slots}\n"),
            MpiImplementation::Intel | MpiImplementation::Mpich => format!("{host}:{slots}\n"),
        }
    };
    let lines: String = (0..job.spec.workers).map(line).collect();
    Some(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": hostfile_name(job), "labels": labels::of_job(job) },
        "data": { HOSTFILE: lines },
    }))
}

/// Mounts the list of hosts and the keys.
pub fn add_volumes(job: &Job<'_>, mpi: &Mpi, all: &mut Volumes) {
    let mount = json!({ "mountPath": DIRECTORY, "readOnly": true });
    all.add("hostfile", "configMap", json!({ "name": hostfile_name(job) }), mount);
    let mut secret = json!({
        "secretName": mpi.ssh_secret_name,
        "items": [
            { "key": "ssh-privatekey", "path": "id_rsa" },
            { "key": "ssh-publickey", "path": "id_rsa.pub" },
            { "key": "ssh-publickey", "path": "authorized_keys" },
        ],
    });
    // `ssh` refuses a key that others can read. The files are root's, so nobody else could read them with this mode.
    if is_root(mpi) {
        secret["defaultMode"] = json!(0o600);
    }
    all.add("ssh", "secret", secret, json!({ "mountPath": ssh_directory(mpi), "readOnly": true }));
}

fn ssh_directory(mpi: &Mpi) -> &str {
    mpi.ssh_directory.as_deref().unwrap_or(ROOT_SSH)
}

/// Whether the processes run as root.
fn is_root(mpi: &Mpi) -> bool {
    ssh_directory(mpi) == ROOT_SSH
}

fn hostfile_name(job: &Job<'_>) -> String {
    job.child_name(HOSTFILE)
}

fn implementation(job: &Job<'_>) -> MpiImplementation {
    job.spec.mpi.as_ref().and_then(|mpi| mpi.implementation).unwrap_or(MpiImplementation::OpenMpi)
}

/// How many processes run in each worker.
fn slots(job: &Job<'_>) -> u32 {
    job.spec.nproc_per_node.unwrap_or(job.spec.gpu_per_worker.max(1))
}

fn ssh_options(job: &Job<'_>) -> String {
    match job.spec.port {
        Some(port) => format!("-p {port} {SSH_OPTIONS}"),
        None => SSH_OPTIONS.to_owned(),
    }
}
