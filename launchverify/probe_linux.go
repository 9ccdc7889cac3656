package launchverify

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// namespaceSettings are what distributions and administrators keep user namespaces from users with. They are told, not
// believed: whether a namespace can be had is tried.
var namespaceSettings = []string{
	"user/max_user_namespaces", "user/max_mnt_namespaces", "user/max_pid_namespaces",
	"kernel/unprivileged_userns_clone", "kernel/apparmor_restrict_unprivileged_userns",
}

// kernelFacts are what the kernel says of itself, and what of it can be tried without a stage.
func kernelFacts() []ProbedFact {
	var facts []ProbedFact
	add := func(name string, err error, detail string) {
		if err != nil {
			detail = err.Error()
		}
		facts = append(facts, ProbedFact{name, err == nil, oneLine(detail)})
	}
	facts = append(facts, ProbedFact{"settings", true, settingsNow()})
	lsm, err := os.ReadFile("/sys/kernel/security/lsm")
	if err != nil {
		lsm = []byte("not told: " + err.Error())
	}
	facts = append(facts, ProbedFact{"security modules", true, oneLine(strings.TrimSpace(string(lsm)))})
	_, err = os.Stat(ownImage)
	add("/proc", err, "mounted")
	add("no_new_privs", tryNoNewPrivs(), "can be set")
	group, err := newCgroup()
	group.remove()
	add("cgroup v2", err, "a group of the job's own can be made at "+string(group))
	memory := "not known"
	if free, by := memoryLeft(); free < math.MaxInt64 {
		memory = fmt.Sprintf("%d MiB, limited by %s", free>>20, by)
	}
	facts = append(facts, ProbedFact{"memory for roots", true, memory})
	return facts
}

// settingsNow gives namespaceSettings and their values, of which some kernels have fewer.
func settingsNow() string {
	var settings []string
	for _, name := range namespaceSettings {
		if b, err := os.ReadFile("/proc/sys/" + name); err == nil {
			settings = append(settings, strings.ReplaceAll(name, "/", ".")+"="+strings.TrimSpace(string(b)))
		}
	}
	return strings.Join(settings, " ")
}

// tryNoNewPrivs sets the flag on a thread that ends with it.
func tryNoNewPrivs() error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}()
	return <-done
}
