package jobpackage

import (
	"path"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// isDocument reports whether a file is one of those that no job needs: the clients leave out PDF files.
func isDocument(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".pdf") }

// The names that look like those of secrets, in lower case.
var (
	secretNames    = []string{".env", ".envrc", ".netrc", "credentials.json", "token.txt", "api_key.txt"}
	secretPatterns = []string{
		".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "id_rsa*", "id_ed25519*", "id_ecdsa*", "id_dsa*", "secrets.*", "*.secret", "hf_token*", "*_credentials.json",
	}
)

// looksSecret reports whether a file's own name looks like a secret's.
func looksSecret(name string) bool {
	base := strings.ToLower(path.Base(name))
	return slices.Contains(secretNames, base) || matchesAny(base, secretPatterns)
}

// matchesAny reports whether a name, which has no slash, fits one of the patterns.
func matchesAny(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// unixEnds reports whether a file's line ends are made Unix's: shells and readers of the cluster stumble over others.
func (f *finder) unixEnds(name string) bool { return unixEnds(f.project.Dialect, name) }

func unixEnds(d dialect.Dialect, name string) bool {
	return strings.HasSuffix(name, ".sh") || strings.HasSuffix(name, ".conf") || path.Base(name) == d.Names().Client
}

// What a walk leaves out, at any depth: folders of output and tools, and of credentials.
var (
	skippedFolders = []string{
		"outputs", "tuneplane_plugins", ".git", ".hg", ".svn", "__pycache__", ".venv", "node_modules", ".ipynb_checkpoints", ".mypy_cache",
		".ruff_cache", ".pytest_cache", ".idea", ".vscode", "wandb", ".tuneplane-data", ".aws", ".kube", ".ssh", ".gnupg", ".terraform", ".docker",
	}
	skippedFiles = []string{
		"*.pyc", "*.pyo", ".env", ".env.*", "*.pem", "id_rsa*", ".DS_Store", ".npmrc", ".pypirc", ".git-credentials", ".netrc", "kubeconfig", "*.kubeconfig",
	}
)

// neverSent reports whether a path is among those that the platform's contract never takes from a walk:
// datasets/**/raw/**, datasets/**/data/**, **/outputs/**, .git/**, **/__pycache__/**, .tuneplane-data/**, **/*.key and
// **/secrets.env.
func neverSent(name string) bool {
	elements := strings.Split(name, "/")
	folders, last := elements[:len(elements)-1], elements[len(elements)-1]
	switch {
	case strings.HasSuffix(last, ".key") || last == "secrets.env":
		return true
	case slices.Contains(folders, "outputs") || slices.Contains(folders, "__pycache__"):
		return true
	case len(folders) == 0:
		return false
	case folders[0] == ".git" || folders[0] == ".tuneplane-data":
		return true
	}
	return folders[0] == "datasets" && (slices.Contains(folders[1:], "raw") || slices.Contains(folders[1:], "data"))
}
