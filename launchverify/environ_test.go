package launchverify

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
)

// What steers where code comes from is taken out, however often it is there; where the job is and where it writes is
// set; the rest passes, in its order.
func TestJobEnvironment(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		env     []string
		d       dialect.Dialect
		keep    []string
		user    *User
		vars    []string
		removed []string
	}{
		{"nothing given", nil, dialect.Forge, nil, nil,
			[]string{"FORGE_WORK_DIR=/r", "PWD=/r", "FORGE_OUT_DIR=/job/e/outputs", "PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1"}, nil},
		{"steered", []string{"B=2", "PYTHONPATH=x", "A=1", "PYTHONPATH=y", "TUNEPLANE_CAPSULE_VERIFIED=1", "FORGE_RUNNER_PEX=/x", "TUNEPLANE_RUNNER_PEX=/y", "PYTHONPYCACHEPREFIX="}, dialect.TunePlane, nil, nil,
			[]string{"B=2", "A=1", "TUNEPLANE_WORK_DIR=/r", "PWD=/r", "TUNEPLANE_OUT_DIR=/job/e/outputs", "PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1"},
			[]string{"FORGE_RUNNER_PEX", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "TUNEPLANE_CAPSULE_VERIFIED", "TUNEPLANE_RUNNER_PEX"}},
		{"set already", []string{"FORGE_WORK_DIR=/elsewhere", "FORGE_OUT_DIR=/out", "PWD=/", "PYTHONNOUSERSITE=", "PYTHONDONTWRITEBYTECODE="}, dialect.Forge, nil, nil,
			[]string{"FORGE_OUT_DIR=/out", "FORGE_WORK_DIR=/r", "PWD=/r", "PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1"}, nil},
		{"kept, but for where the job is", []string{"PYTHONPATH=x", "FORGE_RECIPE_PATH=y", "FORGE_WORK_DIR=/elsewhere", "PYTHONNOUSERSITE=0"}, dialect.Forge,
			[]string{"PYTHONPATH", "FORGE_RECIPE_PATH", "FORGE_WORK_DIR", "PWD", "PYTHONNOUSERSITE"}, nil,
			[]string{"PYTHONPATH=x", "FORGE_RECIPE_PATH=y", "PYTHONNOUSERSITE=0", "FORGE_WORK_DIR=/r", "PWD=/r", "FORGE_OUT_DIR=/job/e/outputs", "PYTHONDONTWRITEBYTECODE=1"}, nil},
		{"what starts or ends Python otherwise", []string{"PYTHONINSPECT=1", "PYTHONHOME=/x", "PYTHONSTARTUP=s", "PYTHONBREAKPOINT=m.f", "PYTHONPLATLIBDIR=l", "LD_PRELOAD=/x.so"}, dialect.Forge, nil, nil,
			[]string{"LD_PRELOAD=/x.so", "FORGE_WORK_DIR=/r", "PWD=/r", "FORGE_OUT_DIR=/job/e/outputs", "PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1"},
			[]string{"PYTHONBREAKPOINT", "PYTHONHOME", "PYTHONINSPECT", "PYTHONPLATLIBDIR", "PYTHONSTARTUP"}},
		{"of somebody else", []string{"HOME=/root", "USER=root", "A=1"}, dialect.Forge, []string{"PYTHONNOUSERSITE"}, &User{UID: 7, Name: "seven", Home: "/home/seven"},
			[]string{"A=1", "FORGE_WORK_DIR=/r", "PWD=/r", "FORGE_OUT_DIR=/job/e/outputs", "PYTHONDONTWRITEBYTECODE=1", "HOME=/home/seven", "LOGNAME=seven", "USER=seven"}, nil},
		{"a relative output directory", []string{"FORGE_OUT_DIR=out"}, dialect.Forge, nil, nil,
			[]string{"FORGE_WORK_DIR=/r", "PWD=/r", "FORGE_OUT_DIR=" + filepath.Join(here, "out"), "PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1"}, nil},
	} {
		got := jobEnvironment(c.env, c.d, "/r", outputsOf(t, c.env, c.d), c.user, c.keep)
		if diff := cmp.Diff(c.vars, got.vars); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.removed, got.removed); diff != "" {
			t.Errorf("%s, removed (-want +got)\n%s", c.name, diff)
		}
	}
}

// What steers and is passed on is told, whether it may pass or was asked for.
func TestPassedOn(t *testing.T) {
	env := []string{"LD_PRELOAD=x", "A=1", "BASH_ENV=y", "PYTHONPATH=z", "LD_PRELOAD=w", "PYTHONHOME=/h"}
	got := jobEnvironment(env, dialect.Forge, "/r", "/o", nil, []string{"PYTHONPATH"})
	if diff := cmp.Diff([]string{"BASH_ENV", "LD_PRELOAD", "PYTHONPATH"}, got.passed); diff != "" {
		t.Errorf("passed on (-want +got)\n%s", diff)
	}
}

// outputsOf is where the job in /job with the experiment e has its outputs.
func outputsOf(t *testing.T, env []string, d dialect.Dialect) string {
	t.Helper()
	l := launch{o: Options{Env: env}, job: &job{dir: "/job", dialect: d, spec: &jobspec.Spec{}}}
	l.job.spec.Source.Exp = "e"
	return l.outputs()
}
