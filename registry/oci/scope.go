package oci

import (
	"net/http"
	"strings"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// verbs is what each kind of request does to its repository. What pushes may pull too: clients look before they push, and
// ask for both at once.
var verbs = [kinds][]auth.Verb{
	BlobGet:        {auth.Pull},
	BlobHead:       {auth.Pull},
	BlobDelete:     {auth.Delete},
	BlobPut:        {auth.Pull, auth.Push},
	BlobMount:      {auth.Pull, auth.Push},
	UploadStart:    {auth.Pull, auth.Push},
	UploadStatus:   {auth.Pull, auth.Push},
	UploadAppend:   {auth.Pull, auth.Push},
	UploadFinish:   {auth.Pull, auth.Push},
	UploadCancel:   {auth.Pull, auth.Push},
	ManifestGet:    {auth.Pull},
	ManifestHead:   {auth.Pull},
	ManifestPut:    {auth.Pull, auth.Push},
	ManifestDelete: {auth.Delete},
	TagsList:       {auth.Pull},
	ReferrersList:  {auth.Pull},
}

// Scope is what a bearer token must be made for to make a request, in the words of the distribution token specification;
// "" for one that needs no scope, or is none.
func Scope(r *http.Request) string {
	q, err := Parse(r.Method, r.URL)
	if err != nil {
		return ""
	}
	if q.Kind == CatalogueList {
		return registry.CatalogueScope
	}
	if len(verbs[q.Kind]) == 0 {
		return ""
	}
	scopes := []string{registry.RepositoryScope(q.Repository, verbs[q.Kind]...)}
	if q.From != "" && registry.CheckRepositoryName(q.From) == nil {
		scopes = append(scopes, registry.RepositoryScope(q.From, auth.Pull))
	}
	return strings.Join(scopes, " ")
}
