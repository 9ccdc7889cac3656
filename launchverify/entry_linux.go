package launchverify

import (
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// entryWatch sees whether the file was opened in which the job's training begins. A plugin can end the process in which training
// would begin before it does (launch.md W11): then processes were started, and this file was never opened.
type entryWatch struct {
	file string // below the job directory; "" where the method's pack does not say, or names code of a framework
	fd   int
}

// watchEntry begins to watch. Where that can't be done nothing hangs on the file.
func (s *stage) watchEntry() entryWatch {
	file := s.entry()
	if file == "" {
		return entryWatch{}
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return entryWatch{}
	}
	// One event is enough. Where the file is moved or changes its links another one may have taken its place: that counts
	// as opened.
	const events = unix.IN_OPEN | unix.IN_MOVE_SELF | unix.IN_DELETE_SELF | unix.IN_ATTRIB | unix.IN_ONESHOT
	if _, err := unix.InotifyAddWatch(fd, filepath.Join(s.plan.Root, file), events); err != nil {
		unix.Close(fd)
		return entryWatch{}
	}
	return entryWatch{file, fd}
}

// never ends the watching and reports whether the file was never opened.
func (w entryWatch) never() bool {
	if w.file == "" {
		return false
	}
	defer unix.Close(w.fd)
	var b [4096]byte
	_, err := unix.Read(w.fd, b[:])
	return err == unix.EAGAIN
}

// entry is the file of the experiment that the method's pack names as its entry point; "" where the job has no such pack, or
// the pack names code of a framework, or lets the experiment choose.
func (s *stage) entry() string {
	value := ""
	var pins []receipt.Pin
	for _, p := range s.plan.Recipes {
		pins = append(pins, p.Pin)
	}
	for _, pin := range append(pins, s.recipes...) {
		src, err := readRegular(filepath.Join(s.plan.Root, s.plan.Dialect.Names().RecipesDir, pin.ID, pack.RecipeFile), limit.Document)
		if err != nil {
			continue
		}
		r, _ := pack.ParseRecipe(src, pack.RecipeOptions{Dialect: s.plan.Dialect})
		if r == nil || r.ID() != s.plan.Recipe {
			continue
		}
		if r.Entrypoint.Kind == "experiment" && r.Entrypoint.ExperimentOverride == "" {
			value = r.Entrypoint.Value
		}
	}
	if value == "" || !filepath.IsLocal(value) || !filepath.IsLocal(s.plan.Exp) {
		return ""
	}
	return path.Join(s.plan.Exp, value)
}
