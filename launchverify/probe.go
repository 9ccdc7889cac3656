package launchverify

import "time"

// ProbeSchema names the form of a Probe.
const ProbeSchema = "gatehouse/launch-probe/v1"

// Probe is what a node can do for launches, found by doing it.
type Probe struct {
	Schema string `json:"schema"`
	Kernel string `json:"kernel"`
	User   User   `json:"user"` // who a job would run as

	// Mode is the mode that a launch would get; "" when it would be refused.
	Mode  Mode         `json:"mode,omitempty"`
	Modes []ProbedMode `json:"modes"` // best first
	Facts []ProbedFact `json:"facts"`
}

// ProbedMode is one mode, tried with a root that held one file and a command that did nothing.
type ProbedMode struct {
	Mode      Mode `json:"mode"`
	Available bool `json:"available"`
	// Asked says that the launch has to ask for it: --allow private-copy.
	Asked    bool     `json:"asked,omitempty"`
	Why      string   `json:"why,omitempty"`      // it is not available
	Root     string   `json:"root,omitempty"`     // where the job would see its directory
	Tracking Tracking `json:"tracking,omitempty"` // by what the job's processes are known when they have to end
}

// ProbedFact is something that modes need, or that says why one can't be had.
type ProbedFact struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// ProbeOptions say what would be launched with.
type ProbeOptions struct {
	MountPoint       string // as in Options
	CacheDir         string
	User             *User
	AllowPrivateCopy bool
}

// probeTime bounds how long one mode may take.
const probeTime = 30 * time.Second
