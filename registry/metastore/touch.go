package metastore

import "strings"

// contentTables are the tables whose rows say nothing about who may do what. A change of any other table moves
// Store.AccessGeneration, so a table that is missing here costs time and nothing else.
var contentTables = map[string]bool{
	"audit": true, "small_blobs": true, "closed_uploads": true, "tags": true, "manifests": true, "manifest_references": true,
	"repository_blobs": true, "condemned": true, "signin_failures": true, "jobs": true, "handovers": true, "package_uploads": true, "previews": true, "device_codes": true, "authorization_codes": true,
	"runs": true, "run_packs": true, "run_digests": true, "job_packs": true,
	"suite_versions": true, "suite_files": true, "environment_runners": true,
}

// touchesAccess reports whether a statement may change a table that is none of contentTables. Triggers and cascades of
// contentTables must not leave them and owner_blobs, owner_usage, which nobody remembers.
func touchesAccess(query string) bool {
	for _, verb := range []string{"INSERT INTO ", "UPDATE ", "DELETE FROM "} {
		if rest, ok := strings.CutPrefix(query, verb); ok {
			table, _, _ := strings.Cut(rest, " ")
			return !contentTables[table]
		}
	}
	return true
}
