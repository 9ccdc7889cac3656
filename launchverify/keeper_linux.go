package launchverify

import (
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeperVerb is the hidden verb of the keeper, a process between agent and stage where the job has no process namespace
// that would end with the stage.
//
// Agent, keeper and stage all adopt orphans of the job, and each of them sees when another one is gone. As long as
// one of the three lives, a SIGKILL of the other two ends the job, and nothing of it is left: the stage sees the agent's
// pipe end, the keeper waits for the stage, and the agent waits for both. Only the death of all three leaves processes
// behind; where they are in a control group the next launch ends them.
const keeperVerb = "__launch-keeper"

// Variables that tell the keeper what to take away when the others are gone. Arguments could be read by anybody.
const (
	keepRoot   = "GATEHOUSE_KEEP_ROOT"
	keepCgroup = "GATEHOUSE_KEEP_CGROUP"
)

// keeping reports whether a plan needs a keeper.
func keeping(p *plan) bool { return !p.PIDNamespace }

// keeperEnv is the environment of a plan's keeper.
func keeperEnv(p *plan) []string {
	env := append([]string{keepCgroup + "=" + string(p.Cgroup)}, stageEnv...)
	if p.Mode == ModePrivateCopy {
		env = append(env, keepRoot+"="+p.Root)
	}
	return env
}

// keep starts the stage with the pipes in the arguments, waits for its end, and ends whatever it left behind.
func keep(args []string) int {
	// The group gets the agent's signals, and they are the stage's business.
	listen()
	hide()
	if err := adopt(); err != nil {
		return exitError
	}
	agent, err := unix.PidfdOpen(os.Getppid(), 0)
	if err != nil {
		agent = -1
	}
	self, err := executable()
	if err != nil {
		return exitError
	}
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, keepRoot+"=") && !strings.HasPrefix(v, keepCgroup+"=") {
			env = append(env, v)
		}
	}
	stage, err := syscall.ForkExec(self, append([]string{self, stageVerb}, args...), &syscall.ProcAttr{Dir: "/", Env: env, Files: []uintptr{0, 1, 2}})
	for _, arg := range args {
		if f, err := ownDescriptor(arg); err == nil {
			f.Close() // the agent must see the stage's pipe end with the stage
		}
	}
	if err != nil {
		return exitError
	}
	if agent >= 0 {
		go urge(agent, stage)
	}
	killed := bury(stage)
	group := cgroup(os.Getenv(keepCgroup))
	endOffspring(nil, group)
	group.remove()
	if root := os.Getenv(keepRoot); killed && root != "" {
		removeTree(root)
	}
	return 0
}

// urge makes the stage end when the agent is gone, even when somebody stopped it.
func urge(agent, stage int) {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(agent), Events: unix.POLLIN}}, -1)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return
		}
	}
	syscall.Kill(stage, syscall.SIGCONT)
	time.Sleep(reaping + lingering)
	syscall.Kill(stage, syscall.SIGKILL)
}

// bury waits until the process has ended, and for orphans meanwhile. It reports whether a signal killed it.
func bury(pid int) (killed bool) {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil && err != syscall.EINTR {
			return true
		}
		if ended == pid {
			return status.Signaled()
		}
	}
}

// hide keeps other processes of the same user from what this one has open and from tracing it, unless they are root.
func hide() { unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// dieWithAgent makes the kernel kill this process when the thread that started it ends. Taking on the job's identity
// and coming back undoes that.
func dieWithAgent() { unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0) }
