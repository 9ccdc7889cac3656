// Package limit states every size limit of Gatehouse in one place. All sizes are bytes.
package limit

// Units.
const (
	KiB = 1 << 10
	MiB = 1 << 20
)

// Archives and the files in them.
const (
	Compressed   = 32 * MiB  // a pack's archive as stored and sent
	Unpacked     = 128 * MiB // the sum of all members, links resolved
	Files        = 10_000    // members of an archive
	Path         = 1024      // bytes of a member's path
	Component    = 255       // bytes of one element of a path
	BombFrom     = 16 * MiB  // below this many unpacked bytes no ratio is looked at
	BombRatio    = 100       // unpacked : compressed beyond BombFrom
	WheelMembers = 10_000    // members of a provider wheel

	ExtendedHeader = 64 * KiB                            // one PAX header or GNU long name of an archive
	EndPadding     = 1 * MiB                             // zeros after an archive's end blocks
	Stream         = Unpacked + Files*4*KiB + EndPadding // an archive uncompressed: members, headers and padding
	Faults         = 100                                 // violations after which an archive is read no further
)

// Documents.
const (
	Manifest   = 4 * MiB  // an OCI manifest or index
	Config     = 16 * MiB // the config blob of a pack
	PluginYAML = 64 * KiB // plugin.yaml
	Document   = 1 * MiB  // recipe.yaml, benchmark.yaml, integration.json, a JobSpec and every other document
	Icon       = 64 * KiB // an icon PNG
	Readme     = 64 * KiB // what is kept of README.md
	YAMLDepth  = 64       // nesting of a YAML document
	JSONDepth  = 64       // nesting of a JSON document
	YAMLNodes  = 100_000  // nodes of a YAML document
	// YAMLClientDepth is the nesting at which the clients' own YAML reader crashes: 491 levels when nothing else
	// is on its stack, a few less inside a client (measured with Python 3.11).
	YAMLClientDepth = 480
	JSONNodes       = 100_000 // values of a JSON document that is read into Python's value model, and of an OCI manifest
	Name            = 128     // characters of a pack's name or version: an OCI tag holds no more
	Header          = 1 * MiB // all request headers together; a JobSpec travels in one
	JSONBody        = 4 * MiB // a JSON request body
	JobPackage      = 256 * MiB
	JobUnpacked     = 1 << 30 // the sum of a job package's members
	JobFiles        = 20_000  // its members
	JobStream       = JobUnpacked + JobFiles*4*KiB + EndPadding
	IdempotencyKey  = 200 // bytes of the key of a commit
)

// Suites: environments, tasksets and rubrics.
const (
	SuiteFiles      = 10_000    // files of a version: its OCI manifest names each
	SuiteIndex      = 8 * MiB   // index.json
	Tasks           = 256 * MiB // tasks.jsonl: the seal reads it whole
	TaskRow         = 4 * MiB   // one row of it
	TasksetManifest = 4 * MiB   // taskset.json
	TasksetTasks    = 10_000    // tasks of a taskset
	RubricText      = 64 * KiB  // a rubric
	SuiteRunners    = 100       // machines that serve one environment
)
