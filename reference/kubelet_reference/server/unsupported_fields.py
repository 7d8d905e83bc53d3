"""Fields and flags of a kubelet that this one does not support: a refusal names them."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FOREIGN_FIELDS = _names(
    """
    allowedUnsafeSysctls authentication authorization cgroupDriver cgroupRoot cgroupsPerQOS clusterDNS
    clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize
    containerLogMaxWorkers containerLogMonitorInterval contentType cpuCFSQuota cpuCFSQuotaPeriod
    cpuManagerPolicy
    cpuManagerPolicyOptions cpuManagerReconcilePeriod enableContentionProfiling
    enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler
    enableServer enableSystemLogHandler enableSystemLogQuery enforceNodeAllocatable eventBurst
    eventRecordQPS evictionMinimumReclaim failCgroupV1 failSwapOn hairpinMode imageMaximumGCAge
    iptablesDropBit iptablesMasqueradeBit kernelMemcgNotification
    kubeAPIBurst kubeAPIQPS kubeReserved kubeReservedCgroup kubeletCgroups localStorageCapacityIsolation
    logging makeIPTablesUtilChains maxOpenFiles memoryManagerPolicy memorySwap
    memoryThrottlingFactor mergeDefaultEvictionSettings nodeLeaseDurationSeconds nodeStatusMaxImages
    nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR podPidsLimit podsPerCore
    protectKernelDefaults providerID qosReserved registerNode
    registerWithTaints reservedMemory reservedSystemCPUs resolvConf rotateCertificates runOnce
    seccompDefault serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod
    shutdownGracePeriodByPodPriority shutdownGracePeriodCriticalPods singleProcessOOMKill
    streamingConnectionIdleTimeout systemCgroups systemReservedCgroup tlsCertFile
    tlsCipherSuites tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerPolicyOptions
    topologyManagerScope tracing userNamespaces volumePluginDir volumeStatsAggPeriod
    """
)
"""Fields of KubeletConfiguration that have no meaning here."""

FOREIGN_FLAGS = _names(
    """
    allowed-unsafe-sysctls anonymous-auth authentication-token-webhook
    authentication-token-webhook-cache-ttl authorization-mode
    authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl
    azure-container-registry-config bootstrap-kubeconfig cert-dir cgroup-driver cgroup-root
    cgroups-per-qos client-ca-file cloud-config cloud-provider cluster-dns cluster-domain config-dir
    container-runtime contention-profiling cpu-cfs-quota cpu-cfs-quota-period cpu-manager-policy
    cpu-manager-policy-options cpu-manager-reconcile-period enable-controller-attach-detach
    enable-debugging-handlers enable-server enforce-node-allocatable event-burst event-qps
    eviction-minimum-reclaim exit-on-lock-contention fail-swap-on hairpin-mode
    image-credential-provider-bin-dir image-credential-provider-config iptables-drop-bit
    iptables-masquerade-bit keep-terminated-pod-volumes kernel-memcg-notification kube-api-burst
    kube-api-content-type kube-api-qps kube-reserved kube-reserved-cgroup kubelet-cgroups
    local-storage-capacity-isolation lock-file log-flush-frequency logging-format
    make-iptables-util-chains max-open-files maximum-dead-containers
    maximum-dead-containers-per-container memory-manager-policy minimum-container-ttl-duration node-ip
    node-labels node-status-max-images node-status-update-frequency oom-score-adj pod-cidr
    pod-infra-container-image pod-max-pids pods-per-core protect-kernel-defaults provider-id
    qos-reserved register-node register-schedulable register-with-taints reserved-cpus reserved-memory
    resolv-conf rotate-certificates rotate-server-certificates runonce runtime-cgroups seccomp-default
    show-hidden-metrics-for-version streaming-connection-idle-timeout system-cgroups system-reserved
    system-reserved-cgroup tls-cert-file tls-cipher-suites tls-min-version tls-private-key-file
    topology-manager-policy topology-manager-policy-options topology-manager-scope vmodule
    volume-plugin-dir volume-stats-agg-period
    """
)
"""Flags of a kubelet that have no meaning here, without their dashes."""

FLAGS_OF_FIELDS = _names(
    """
    address container-log-max-files container-log-max-size eviction-hard eviction-max-pod-grace-period
    eviction-pressure-transition-period eviction-soft eviction-soft-grace-period file-check-frequency
    healthz-bind-address http-check-frequency image-gc-high-threshold image-gc-low-threshold
    manifest-url-header max-pods minimum-image-ttl-duration registry-burst registry-qps
    runtime-request-timeout serialize-image-pulls sync-frequency
    """
)
"""Deprecated flags of a kubelet whose fields there are here."""

FOREIGN_GATES = _names(
    """
    AllAlpha AllBeta ContainerCheckpoint CPUManagerPolicyOptions GracefulNodeShutdown ImageMaximumGCAge
    KubeletInUserNamespace KubeletTracing MemoryQoS NodeSwap PodAndContainerStatsFromCRI PodHostIPs
    PodLevelResources ProcMountType RecoverVolumeExpansionFailure ResourceHealthStatus
    RotateKubeletServerCertificate SELinuxMount SystemdWatchdog TopologyManagerPolicyOptions
    UserNamespacesSupport
    """
)
"""Feature gates of a kubelet that switch nothing here."""
