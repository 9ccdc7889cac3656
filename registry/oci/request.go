package oci

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Kind is what a request asks for.
type Kind uint8

// The kinds. Each has one entry in the table of handlers.
const (
	Ping Kind = iota
	BlobGet
	BlobHead
	BlobDelete
	BlobPut   // a POST that brings the whole blob
	BlobMount // a POST that links a blob of another repository
	UploadStart
	UploadStatus
	UploadAppend
	UploadFinish
	UploadCancel
	ManifestGet
	ManifestHead
	ManifestPut
	ManifestDelete
	TagsList
	ReferrersList
	CatalogueList
	kinds // how many there are
)

// Kinds is how many kinds there are; each number below it is one.
const Kinds = kinds

// noLimit is the N of a request for a list that names no size of a page.
const noLimit = -1

// Request is a request of the distribution protocol, taken apart. Only what its Kind needs is set, and all of that is
// well-formed.
type Request struct {
	Kind       Kind
	Repository string
	Reference  registry.Reference // of a manifest; a ManifestPut by tag may name the digest too (?digest=)
	Tags       []string           // of a ManifestPut by digest: the tags to set (?tag=)
	Digest     digest.Digest      // of a blob or a subject; what a finished upload must be
	Upload     string             // the id of an upload session
	From       string             // BlobMount: the repository to mount from, "" for any

	N            int           // lists: the size of a page, noLimit when none is named
	Last         string        // TagsList, CatalogueList: the last element of the page before
	After        digest.Digest // ReferrersList: likewise
	ArtifactType string        // ReferrersList: the filter, "" for none
}

// MethodError says that a path exists, but not for the method. It unwraps to an *registry.Error of Code Unsupported.
type MethodError struct {
	Method  string
	Allowed []string // sorted
}

func (e *MethodError) Error() string { return e.Unwrap().Error() }

func (e *MethodError) Unwrap() error {
	return registry.Errorf(registry.Unsupported, "method %.20q is not supported here; allowed: %s", e.Method, strings.Join(e.Allowed, ", "))
}

// endpoint is a form of path.
type endpoint uint8

const (
	pingPath endpoint = iota
	cataloguePath
	blobPath
	uploadsPath
	uploadPath
	manifestPath
	tagsPath
	referrersPath
)

// methods is the table of routes. What can be read answers a HEAD too. What a POST to uploadsPath asks for is in its query.
var methods = map[endpoint]map[string]Kind{
	pingPath:      {http.MethodGet: Ping, http.MethodHead: Ping},
	cataloguePath: {http.MethodGet: CatalogueList, http.MethodHead: CatalogueList},
	blobPath:      {http.MethodGet: BlobGet, http.MethodHead: BlobHead, http.MethodDelete: BlobDelete},
	uploadsPath:   {http.MethodPost: UploadStart},
	uploadPath: {http.MethodGet: UploadStatus, http.MethodHead: UploadStatus, http.MethodPatch: UploadAppend,
		http.MethodPut: UploadFinish, http.MethodDelete: UploadCancel},
	manifestPath: {http.MethodGet: ManifestGet, http.MethodHead: ManifestHead, http.MethodPut: ManifestPut,
		http.MethodDelete: ManifestDelete},
	tagsPath:      {http.MethodGet: TagsList, http.MethodHead: TagsList},
	referrersPath: {http.MethodGet: ReferrersList, http.MethodHead: ReferrersList},
}

// maxTags is how many tags a ManifestPut by digest may set at once.
const maxTags = 32

// Parse takes a request apart. Repository names hold slashes, so a path is read from its end. A slash that is escaped
// in the path is refused: it would read as a separator here and as part of a name elsewhere. Errors, all
// *registry.Error: NotFound, NameInvalid, TagInvalid, DigestInvalid, BlobUploadUnknown, PageInvalid, Unsupported (a
// *MethodError).
func Parse(method string, u *url.URL) (*Request, error) {
	if strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") {
		return nil, registry.Errorf(registry.NameInvalid, "the path holds an escaped slash (%%2F); write it as it is")
	}
	at, repository, element, ok := splitPath(u.Path)
	if !ok {
		return nil, registry.Errorf(registry.NotFound, "%.100q is no path of the distribution protocol", u.Path)
	}
	kind, ok := methods[at][method]
	if !ok {
		allowed := make([]string, 0, len(methods[at]))
		for m := range methods[at] {
			allowed = append(allowed, m)
		}
		slices.Sort(allowed)
		return nil, &MethodError{Method: method, Allowed: allowed}
	}
	q := &Request{Kind: kind, Repository: repository, N: noLimit}
	if at != pingPath && at != cataloguePath {
		if err := registry.CheckRepositoryName(repository); err != nil {
			return nil, err
		}
	}
	var query url.Values
	if u.RawQuery != "" {
		query = u.Query()
	}
	return q, q.read(at, element, query)
}

// splitPath finds the endpoint, the repository and the last element of a path.
func splitPath(path string) (at endpoint, repository, element string, ok bool) {
	if path == "/v2" {
		return pingPath, "", "", true
	}
	rest, ok := strings.CutPrefix(path, "/v2/")
	if !ok {
		return 0, "", "", false
	}
	switch rest {
	case "":
		return pingPath, "", "", true
	case "_catalog":
		return cataloguePath, "", "", true
	}
	for _, suffix := range []string{"/blobs/uploads/", "/blobs/uploads"} {
		if name, ok := strings.CutSuffix(rest, suffix); ok {
			return uploadsPath, name, "", true
		}
	}
	rest, element, _ = cutLast(rest)
	name, noun, _ := cutLast(rest)
	switch {
	case noun == "blobs":
		return blobPath, name, element, true
	case noun == "manifests":
		return manifestPath, name, element, true
	case noun == "referrers":
		return referrersPath, name, element, true
	case noun == "tags" && element == "list":
		return tagsPath, name, "", true
	case noun == "uploads":
		if name, ok := strings.CutSuffix(name, "/blobs"); ok {
			return uploadPath, name, element, true
		}
	}
	return 0, "", "", false
}

// cutLast splits s around its last slash.
func cutLast(s string) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// read takes the last element of the path and the query.
func (q *Request) read(at endpoint, element string, query url.Values) (err error) {
	switch at {
	case blobPath:
		q.Digest, err = parseDigest("", element)
	case referrersPath:
		err = q.readReferrers(element, query)
	case manifestPath:
		err = q.readReference(element, query)
	case uploadsPath:
		err = q.readStart(query)
	case uploadPath:
		err = q.readUpload(element, query)
	case tagsPath, cataloguePath:
		q.Last = query.Get("last")
		q.N, err = parseN(query)
	}
	return err
}

func (q *Request) readReference(element string, query url.Values) (err error) {
	if q.Reference, err = registry.ParseReference(element); err != nil || q.Kind != ManifestPut {
		return err
	}
	if q.Reference.Tag != "" {
		if query.Has("digest") {
			q.Reference.Digest, err = parseDigest("digest=", query.Get("digest"))
		}
		return err
	}
	if q.Tags = query["tag"]; len(q.Tags) > maxTags {
		return registry.Errorf(registry.TagInvalid, "%d tags are asked for, at most %d may be set at once", len(q.Tags), maxTags)
	}
	for _, tag := range q.Tags {
		if ref, err := registry.ParseReference(tag); err != nil || ref.Tag == "" {
			return registry.Errorf(registry.TagInvalid, "tag=%.150q is no tag", tag)
		}
	}
	return nil
}

func (q *Request) readReferrers(element string, query url.Values) (err error) {
	q.ArtifactType = query.Get("artifactType")
	if q.Digest, err = parseDigest("", element); err != nil {
		return err
	}
	if query.Has("last") {
		if q.After, err = parseDigest("last=", query.Get("last")); err != nil {
			return err
		}
	}
	q.N, err = parseN(query)
	return err
}

// readStart tells apart what a POST asks for. digest-algorithm needs no attention: any known digest may finish an upload.
func (q *Request) readStart(query url.Values) (err error) {
	switch {
	case query.Has("mount"):
		q.Kind, q.From = BlobMount, query.Get("from")
		q.Digest, err = parseDigest("mount=", query.Get("mount"))
	case query.Has("digest"):
		q.Kind = BlobPut
		q.Digest, err = parseDigest("digest=", query.Get("digest"))
	}
	return err
}

func (q *Request) readUpload(id string, query url.Values) (err error) {
	if !validUpload(id) {
		return registry.Errorf(registry.BlobUploadUnknown, "%.100q is no upload session", id)
	}
	q.Upload = id
	if q.Kind == UploadFinish {
		q.Digest, err = parseDigest("digest=", query.Get("digest"))
	}
	return err
}

// validUpload reports whether id can be the id of a session: the hex digits that the registry gives out.
func validUpload(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "0123456789abcdef") == ""
}

func parseDigest(where, text string) (digest.Digest, error) {
	d, err := digest.Parse(text)
	if err != nil {
		return d, registry.Errorf(registry.DigestInvalid, "%s%.150q: %w", where, text, err)
	}
	return d, nil
}

func parseN(query url.Values) (int, error) {
	if !query.Has("n") {
		return noLimit, nil
	}
	n, err := strconv.Atoi(query.Get("n"))
	if err != nil || n < 0 {
		return 0, registry.Errorf(registry.PageInvalid, "n=%.40q is not a number of 0 or more", query.Get("n"))
	}
	return n, nil
}
