package pack

import (
	"path"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// reservedModules are the top-level names that both dialects keep for what a training process imports (packs.md
// 4.2); each dialect adds its own package.
var reservedModules = []string{
	"nemo_rl", "common", "ray", "torch", "transformers", "vllm", "trl", "verl", "numpy", "yaml", "json", "os", "sys",
}

// startupModules are imported by every Python process that finds them, before any other code.
var startupModules = []string{"sitecustomize", "usercustomize"}

// reservedFor reports whether the client of the dialect refuses a top-level module of that name.
func reservedFor(d dialect.Dialect, module string) bool {
	return module == d.Names().Package || slices.Contains(reservedModules, module)
}

// ReservedModule reports whether a pack of some dialect may not bring a top-level module of that name.
func ReservedModule(module string) bool { return shadows(module) }

// shadows reports whether a top-level module of that name would stand in for one of either platform's, in whatever
// dialect the pack is written.
func shadows(module string) bool {
	return reservedFor(dialect.Forge, module) || reservedFor(dialect.TunePlane, module) || slices.Contains(startupModules, module)
}

// moduleName is the name under which Python imports a file, "" when it imports none.
func moduleName(file string) string {
	switch tree.Suffix(file) {
	case ".py", ".pyc", ".pyo":
		return strings.TrimSuffix(file, tree.Suffix(file))
	case ".so", ".pyd": // torch.so, torch.abi3.so, torch.cpython-312-x86_64-linux-gnu.so
		name, _, _ := strings.Cut(file, ".")
		return name
	}
	return ""
}

// reserved checks that nothing in the root of a pack, which joins sys.path, is imported instead of what the
// training process means (packs.md 4.2, 13.7).
func (l *layout) reserved() {
	for _, top := range l.nodes.topLevel() {
		_, isFile := l.nodes.file(top)
		client := top
		if isFile && tree.Suffix(top) == ".py" {
			client = moduleName(top)
		}
		module := client
		if isFile && moduleName(top) != "" {
			module = moduleName(top)
		}
		switch {
		case reservedFor(l.m.Dialect, client):
			l.add("layout.reserved", packageField, top, "%.200q takes the top-level name %q, which is reserved: the pack's root joins sys.path, so it would be imported instead of the real module", top, client)
		case shadows(module):
			l.add("layout.reserved.shadow", packageField, top, "%.200q is imported as %q, which is reserved: the pack's root joins sys.path, so it would be imported instead of the real module", top, module)
		}
	}
}

// entrypoint checks that the module that the manifest names is there. The callable is not looked for: nothing of a
// pack is ever run or parsed here.
func (l *layout) entrypoint() {
	if !isEntrypoint(l.m.Entrypoint) || !l.m.Kind.TakesEntrypoint() {
		return
	}
	module, _, _ := strings.Cut(l.m.Entrypoint, ":")
	base := path.Join(strings.FieldsFunc(module, func(r rune) bool { return r == '.' })...)
	candidates := []string{base + ".py", base + "/__init__.py"}
	for _, file := range candidates {
		if l.nodes.counted(file) {
			return
		}
	}
	for _, file := range candidates {
		if e, ok := l.nodes.file(file); ok {
			l.behindLink("entrypoint", file, e.Path)
			return
		}
	}
	l.add("layout.entrypoint", "entrypoint", "", "the entrypoint module %.100q is not in the pack; expected %.200q or %.200q", module, candidates[0], candidates[1])
}
