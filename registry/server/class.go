package server

import (
	"net/http"
	"strings"

	"github.com/gatehouse-registry/gatehouse/registry/api"
	"github.com/gatehouse-registry/gatehouse/registry/oci"
	"github.com/gatehouse-registry/gatehouse/web"
)

// class is a family of routes, the label that metrics, traces and logs carry. There are few of them and their names are
// fixed: what a client writes into a path never becomes a label.
type class string

// The classes.
const (
	classPing       class = "ping"
	classToken      class = "token"
	classBlob       class = "blob"
	classUpload     class = "upload"
	classManifest   class = "manifest"
	classTags       class = "tags"
	classReferrers  class = "referrers"
	classCatalogue  class = "catalogue"
	classPublish    class = "publish"    // a pack's archive on /api
	classPackage    class = "package"    // likewise, on its way out
	classSubmission class = "submission" // gate 2
	classAPI        class = "api"
	classPage       class = "page" // for people who sign a client in
	classHealth     class = "health"
	classScrape     class = "metrics"
	classOther      class = "other"
)

// classes lists every class.
var classes = []class{classPing, classToken, classBlob, classUpload, classManifest, classTags, classReferrers, classCatalogue, classPublish,
	classPackage, classSubmission, classAPI, classPage, classHealth, classScrape, classOther}

// classOf finds the class of a request, and whether it moves content, which takes as long as a client's line is slow.
func classOf(method, path string) (c class, transfer bool) {
	switch {
	case strings.HasPrefix(path, "/v2"):
		return ociClass(method, path)
	case path == "/api/plugins/publish":
		return classPublish, method == http.MethodPost
	case strings.HasPrefix(path, "/api/plugins/") && strings.HasSuffix(path, "/package"):
		return classPackage, method == http.MethodGet
	case path == api.SuiteUploads:
		return classUpload, method == http.MethodPut
	case strings.HasPrefix(path, "/api/submissions/uploads/"):
		return classSubmission, method == http.MethodPut || method == http.MethodPatch
	case strings.HasPrefix(path, "/api/jobs/") && strings.HasSuffix(path, "/package"):
		return classSubmission, method == http.MethodGet
	case strings.HasPrefix(path, "/api/submissions/"), strings.HasPrefix(path, "/api/jobs"), strings.HasPrefix(path, "/api/job/"), path == "/api/admission":
		return classSubmission, false
	case strings.HasPrefix(path, "/api/"):
		return classAPI, false
	case web.Is(path):
		return classPage, false
	case path == "/healthz", path == "/readyz":
		return classHealth, false
	case path == "/metrics":
		return classScrape, false
	}
	return classOther, false
}

func ociClass(method, path string) (class, bool) {
	rest := strings.TrimPrefix(path, "/v2/")
	last := strings.LastIndexByte(rest, '/')
	noun := ""
	if last > 0 {
		noun = rest[strings.LastIndexByte(rest[:last], '/')+1 : last]
	}
	switch {
	case path == "/v2" || rest == "":
		return classPing, false
	case rest == "_catalog":
		return classCatalogue, false
	case path == oci.TokenPath:
		return classToken, false
	case noun == "uploads":
		return classUpload, method == http.MethodPatch || method == http.MethodPut || method == http.MethodPost
	case noun == "blobs":
		return classBlob, method == http.MethodGet
	case noun == "manifests":
		return classManifest, false
	case noun == "tags":
		return classTags, false
	case noun == "referrers":
		return classReferrers, false
	}
	return classOther, false
}
