package rule

// jobResources: the bounds on nodes and GPUs are ours in forge and can't be softened all the same, since numbers without
// a bound would break the accounting of everybody's quota.
var jobResources = []Info{
	{ID: "job.resources.object", Title: "spec.resources is an object.", Fix: "Write resources as {pools, roles}.", Example: at(`spec.resources`, `8`)},
	{
		ID: "job.resources.pools.array", Title: "spec.resources.pools is an array.", Fix: "Write pools as an array of {name, series, nodes, gpus_per_node}.",
		Example: at(`spec.resources`, `{"pools":{"name":"all"}}`),
	},
	{ID: "job.resources.pool.object", Title: "A pool is an object.", Fix: "Write the pool as {name, series, nodes, gpus_per_node}.", Example: at(`spec.resources`, `{"pools":["all"]}`)},
	{ID: "job.resources.pool.name.required", Title: "A pool has a name.", Fix: "Add a name, such as all.", Example: at(`spec.resources`, `{"pools":[{"nodes":1}]}`)},
	{ID: "job.resources.pool.name.type", Title: "A pool's name is a string.", Fix: "Write the name in quotes.", Example: at(`spec.resources`, `{"pools":[{"name":1}]}`)},
	{ID: "job.resources.pool.name.segment", Title: "A pool's name is a name.", Fix: segmentFix, Example: at(`spec.resources`, `{"pools":[{"name":"all nodes"}]}`)},
	{
		ID: "job.resources.pool.nodes.positive", Title: "nodes is a whole number above 0.", Fix: "Write a whole number without quotes, or leave nodes out for 1.",
		Example: at(`spec.resources`, `{"pools":[{"name":"all","nodes":"2"}]}`),
	},
	{
		ID: "job.resources.pool.nodes.max", Title: "nodes is at most 65536.", Fix: "Ask for fewer nodes.", Ours: true, Fixed: true, OursIn: inForge,
		Example: at(`spec.resources`, `{"pools":[{"name":"all","nodes":70000}]}`),
	},
	{
		ID: "job.resources.pool.gpus_per_node.range", Title: "gpus_per_node is a whole number above 0; tuneplane also takes 0.",
		Fix:     "Write a whole number without quotes, or leave gpus_per_node out for 1.",
		Example: at(`spec.resources`, `{"pools":[{"name":"all","gpus_per_node":"8"}]}`),
	},
	{
		ID: "job.resources.pool.gpus_per_node.max", Title: "gpus_per_node is at most 1024.", Fix: "Ask for fewer GPUs on a node.", Ours: true, Fixed: true, OursIn: inForge,
		Example: at(`spec.resources`, `{"pools":[{"name":"all","gpus_per_node":2000}]}`),
	},
	{
		ID: "job.resources.pool.cpu_only.series", Title: "A pool without GPUs names no series.", Fix: "Remove series, or ask for GPUs.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all","gpus_per_node":0,"series":"h200","cpus":8,"memory_gb":32}]}`)),
	},
	{
		ID: "job.resources.pool.cpu_only.host", Title: "A pool without GPUs says how many CPUs and how much memory it needs.",
		Fix: "Give cpus and memory_gb as whole numbers above 0, and scratch_gb, if at all, as one of at least 0.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all","gpus_per_node":0}]}`)),
	},
	{
		ID: "job.resources.pool.host.whole", Title: "cpus, memory_gb and scratch_gb are whole numbers.", Fix: "Write a whole number, or leave it out.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all","cpus":1.5}]}`)),
	},
	{
		ID: "job.resources.pool.host.negative", Title: "cpus, memory_gb and scratch_gb are not negative.", Fix: "Leave it out to say nothing.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all","memory_gb":-1}]}`)),
	},
	{
		ID: "job.resources.pool.host.max", Title: "cpus, memory_gb and scratch_gb are at most 1048576.", Fix: "Ask for less.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all","memory_gb":2000000}]}`)),
	},
	{
		ID: "job.resources.pools.empty", Title: "There is at least one pool.", Fix: "Add a pool, such as {\"name\": \"all\", \"nodes\": 1, \"gpus_per_node\": 8}.",
		Example: at(`spec.resources`, `{"pools":[]}`),
	},
	{
		ID: "job.resources.total", Title: "GPUs, CPUs and memory over all nodes and pools are at most 2147483647 each.", Fix: "Ask for less.", Ours: true, Fixed: true, OursIn: inForge,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all","nodes":2048,"memory_gb":1048576}]}`)),
	},
	{ID: "job.resources.pools.duplicate", Title: "No two pools have one name.", Fix: "Rename one of the pools.", Example: at(`spec.resources`, `{"pools":[{"name":"all"},{"name":"all"}]}`)},
	{
		ID: "job.resources.roles.object", Title: "spec.resources.roles is an object.", Fix: "Write roles as an object from role to pool name.",
		Example: at(`spec.resources`, `{"pools":[{"name":"all"}],"roles":["actor"]}`),
	},
	{
		ID: "job.resources.roles.target", Title: "A role points at a pool that exists.", Fix: "Write the name of one of the pools behind the role.",
		Example: at(`spec.resources`, `{"pools":[{"name":"all"}],"roles":{"actor":"train"}}`),
	},
	{
		ID: "job.resources.leases.array", Title: "spec.resources.leases is an array.", Fix: "Write leases as an array of {tool, seats}.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all"}],"leases":"matlab"}`)),
	},
	{
		ID: "job.resources.lease.object", Title: "A lease is an object.", Fix: "Write the lease as {tool, seats}.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all"}],"leases":["matlab"]}`)),
	},
	{
		ID: "job.resources.lease.tool", Title: "A lease names its tool.", Fix: "Add the tool whose seat the job takes.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all"}],"leases":[{"seats":1}]}`)),
	},
	{
		ID: "job.resources.lease.seats", Title: "seats is a whole number above 0.", Fix: "Write a whole number without quotes, or leave seats out for 1.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all"}],"leases":[{"tool":"matlab","seats":0}]}`)),
	},
	{
		ID: "job.resources.leases.duplicate", Title: "No tool is leased twice.", Fix: "Put the seats of a tool into one lease.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all"}],"leases":[{"tool":"matlab"},{"tool":"matlab"}]}`)),
	},
	{
		ID: "job.resources.network.fields", Title: "spec.resources.network is an object of transport, interface and isolation.", Fix: "Use only transport, interface and isolation, or leave network out.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all"}],"network":{"mtu":9000}}`)),
	},
	{
		ID: "job.resources.network.value", Title: "transport is tcp or rdma, isolation is fleet or job.", Fix: "Use tcp and fleet.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all"}],"network":{"transport":"udp"}}`)),
	},
	{
		ID: "job.resources.network.interface", Title: "interface is empty or the name of one network interface.", Fix: "Write 1 to 15 letters, digits, '_', '.' or '-', such as eth0.", Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all"}],"network":{"interface":"eth0:1"}}`)),
	},
	{
		ID: "job.resources.network.supported", Title: "The network is one that a job can start with.",
		Fix: "Use transport tcp and isolation fleet: the launcher refuses the others.", Ours: true, Dialects: inTunePlane,
		Example: inTune(at(`spec.resources`, `{"pools":[{"name":"all"}],"network":{"transport":"rdma"}}`)),
	},
}

var jobRest = []Info{
	{
		ID: "job.hyperparams.object", Title: "spec.hyperparams is an object.", Fix: "Write hyperparams as an object from parameter name to value.",
		Example: at(`spec.hyperparams`, `["learning_rate"]`),
	},
	{ID: "job.lifecycle.object", Title: "spec.lifecycle is an object.", Fix: "Write lifecycle as {\"on_success\": [...]}.", Example: at(`spec.lifecycle`, `["export"]`)},
	{
		ID: "job.lifecycle.on_success.array", Title: "on_success is an array.", Fix: "Write on_success as an array of strings, such as [\"export\"].",
		Example: at(`spec.lifecycle`, `{"on_success":"export"}`),
	},
	{ID: "job.lifecycle.on_success.segment", Title: "An action is a name.", Fix: "Use export or eval.", Example: at(`spec.lifecycle`, `{"on_success":["export model"]}`)},
	{ID: "job.evaluation.object", Title: "spec.evaluation is an object.", Fix: "Write evaluation as an object, or leave it out.", Example: at(`spec.evaluation`, `["gsm8k"]`)},
	{ID: "job.evaluation.suites.array", Title: "suites is an array.", Fix: "Write suites as an array of strings.", Example: at(`spec.evaluation`, `{"suites":"gsm8k"}`)},
	{ID: "job.evaluation.suites.segment", Title: "A suite is a name.", Fix: segmentFix, Example: at(`spec.evaluation`, `{"suites":["gsm8k/main"]}`)},
	{
		ID: "job.evaluation.gates.array", Title: "gates is an array.", Fix: "Write gates as an array of {metric, min, max, max_regression}.",
		Example: at(`spec.evaluation`, `{"suites":["gsm8k"],"gates":"gsm8k/accuracy"}`),
	},
	{
		ID: "job.evaluation.gate.object", Title: "A gate is an object.", Fix: "Write the gate as {metric, min, max, max_regression}.",
		Example: at(`spec.evaluation`, `{"suites":["gsm8k"],"gates":["gsm8k/accuracy"]}`),
	},
	{
		ID: "job.evaluation.gate.metric.required", Title: "A gate has a metric.", Fix: "Add the metric: <benchmark>/<key>.",
		Example: at(`spec.evaluation`, `{"suites":["gsm8k"],"gates":[{"min":0.5}]}`),
	},
	{
		ID: "job.evaluation.gate.metric.type", Title: "A gate's metric is a string.", Fix: "Write the metric in quotes as <benchmark>/<key>.",
		Example: at(`spec.evaluation`, `{"suites":["gsm8k"],"gates":[{"metric":7,"min":0.5}]}`),
	},
	{
		ID: "job.evaluation.gate.metric.format", Title: "A gate's metric is <benchmark>/<key>; with exactly one suite the key alone will do.",
		Fix:     "Write <benchmark>/<key>, such as gsm8k/exact_match.",
		Example: at(`spec.evaluation`, `{"suites":["gsm8k","math"],"gates":[{"metric":"accuracy","min":0.5}]}`),
	},
	{
		ID: "job.evaluation.gate.metric.suite", Title: "The benchmark of a gate's metric is one of suites.", Fix: "Add the benchmark to suites, or correct the metric.",
		Example: at(`spec.evaluation`, `{"suites":["gsm8k"],"gates":[{"metric":"mmlu/accuracy","min":0.5}]}`),
	},
	{
		ID: "job.evaluation.gate.bound.type", Title: "min, max and max_regression are numbers or null.", Fix: "Write the bound as a number without quotes.",
		Example: at(`spec.evaluation`, `{"suites":["gsm8k"],"gates":[{"metric":"gsm8k/accuracy","min":"0.5"}]}`),
	},
	{
		ID: "job.evaluation.gate.bound.missing", Title: "A gate has a bound.", Fix: "Add min, max or max_regression: without one the gate decides nothing.",
		Example: at(`spec.evaluation`, `{"suites":["gsm8k"],"gates":[{"metric":"gsm8k/accuracy"}]}`),
	},
	{
		ID: "job.evaluation.gate.regression.negative", Title: "max_regression is not negative.", Fix: "Write how far the metric may get worse, as a number of at least 0.",
		Example: at(`spec.evaluation`, `{"suites":["gsm8k"],"gates":[{"metric":"gsm8k/accuracy","max_regression":-0.1}]}`),
	},
	{
		ID: "job.evaluation.gates.suites_required", Title: "Gates have suites that run.", Fix: "Add the gates' benchmarks to suites.",
		Example: at(`spec.evaluation`, `{"gates":[{"metric":"gsm8k/accuracy","min":0.5}]}`),
	},
	{
		ID: "job.evaluation.limit.positive", Title: "limit is a whole number above 0.", Fix: "Write a whole number without quotes, or leave limit out for none.",
		Example: at(`spec.evaluation`, `{"suites":["gsm8k"],"limit":"100"}`),
	},
	{
		ID: "job.evaluation.on_checkpoint.object", Title: "on_checkpoint is an object.", Fix: "Write on_checkpoint as an object, or leave it out.", Dialects: inTunePlane,
		Example: inTune(at(`spec.evaluation`, `{"suites":["gsm8k"],"on_checkpoint":500}`)),
	},
	{
		ID: "job.evaluation.on_checkpoint.every_steps", Title: "every_steps is a whole number above 0.", Fix: "Say after how many steps to evaluate.", Dialects: inTunePlane,
		Example: inTune(at(`spec.evaluation`, `{"suites":["gsm8k"],"on_checkpoint":{"every_steps":0}}`)),
	},
	{
		ID: "job.evaluation.on_checkpoint.suites", Title: "on_checkpoint has suites of its own, or takes those of evaluation.",
		Fix: "Name the benchmarks in on_checkpoint.suites or evaluation.suites, as an array of names.", Dialects: inTunePlane,
		Example: inTune(at(`spec.evaluation`, `{"on_checkpoint":{"every_steps":500}}`)),
	},
	{
		ID: "job.evaluation.on_checkpoint.limit", Title: "limit is a whole number above 0.", Fix: "Write a whole number without quotes, or leave limit out for none.", Dialects: inTunePlane,
		Example: inTune(at(`spec.evaluation`, `{"suites":["gsm8k"],"on_checkpoint":{"every_steps":500,"limit":-1}}`)),
	},
	{
		ID: "job.evaluation.on_checkpoint.repetitions", Title: "repetitions is a whole number above 0.", Fix: "Write a whole number without quotes, or leave it out for 1.", Dialects: inTunePlane,
		Example: inTune(at(`spec.evaluation`, `{"suites":["gsm8k"],"on_checkpoint":{"every_steps":500,"repetitions":1.5}}`)),
	},
	{
		ID: "job.evaluation.on_checkpoint.warmup_steps", Title: "warmup_steps is a whole number of at least 0.", Fix: "Write a whole number without quotes, or leave it out for 0.", Dialects: inTunePlane,
		Example: inTune(at(`spec.evaluation`, `{"suites":["gsm8k"],"on_checkpoint":{"every_steps":500,"warmup_steps":-1}}`)),
	},
	{
		ID: "job.evaluation.on_checkpoint.fleet", Title: "fleet is empty or a name.", Fix: segmentFix, Dialects: inTunePlane,
		Example: inTune(at(`spec.evaluation`, `{"suites":["gsm8k"],"on_checkpoint":{"every_steps":500,"fleet":"my fleet"}}`)),
	},
	{ID: "job.provenance.object", Title: "provenance is an object.", Fix: "Write provenance as an object with core_version.", Example: at(`provenance`, `"0.3.56"`)},
	{ID: "job.provenance.core_version.required", Title: "provenance.core_version is present.", Fix: "Add the version of the client package.", Example: at(`provenance`, `{}`)},
	{ID: "job.provenance.core_version.type", Title: "provenance.core_version is a string.", Fix: "Write the version in quotes.", Example: at(`provenance`, `{"core_version":0.3}`)},
	{ID: "job.provenance.core_version.empty", Title: "provenance.core_version is not empty.", Fix: "Write the version of the client package.", Example: at(`provenance`, `{"core_version":" "}`)},
	{
		ID: "job.provenance.git_dirty.type", Title: "provenance.git_dirty is not a boolean and was read as one.",
		Fix: "Write true or false without quotes; any other text counts as true.", Ours: true, Severity: Warn,
		Example: at(`provenance`, `{"core_version":"0.3.56","git_dirty":"false"}`),
	},
}
