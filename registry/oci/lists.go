package oci

import (
	"net/url"
	"strconv"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// maxPage is how many elements of a list one answer holds at most; Link leads to the rest.
const maxPage = 10_000

// listTags answers with a page of the repository's tags in byte order.
func (h *handler) listTags(x *exchange) error {
	tags, err := h.service.Tags(x.ctx, x.p, x.Repository, x.Last, x.pageSize()+1)
	if err != nil {
		return err
	}
	tags = x.cutPage(tags, "/v2/"+x.Repository+"/tags/list")
	return x.writeJSON("application/json", struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}{x.Repository, tags})
}

// listCatalogue answers with a page of all repositories that the caller may read, in byte order.
func (h *handler) listCatalogue(x *exchange) error {
	names, err := h.service.Repositories(x.ctx, x.p, x.Last, x.pageSize()+1)
	if err != nil {
		return err
	}
	names = x.cutPage(names, "/v2/_catalog")
	return x.writeJSON("application/json", struct {
		Repositories []string `json:"repositories"`
	}{names})
}

// pageSize is how many elements the answer holds at most.
func (x *exchange) pageSize() int {
	if x.N == noLimit {
		return maxPage
	}
	return min(x.N, maxPage)
}

// cutPage keeps one page of a list that was asked for with one element more, and links to the next page when there is
// one.
func (x *exchange) cutPage(list []string, path string) []string {
	size := x.pageSize()
	if len(list) <= size || size == 0 {
		return append([]string{}, list[:min(size, len(list))]...)
	}
	list = list[:size]
	x.linkNext(path, url.Values{"n": {strconv.Itoa(size)}, "last": {list[size-1]}})
	return list
}

func (x *exchange) linkNext(path string, query url.Values) {
	x.w.Header().Set("Link", "<"+path+"?"+query.Encode()+`>; rel="next"`)
}

// index is the image index that lists referrers.
type index struct {
	SchemaVersion int        `json:"schemaVersion"`
	MediaType     string     `json:"mediaType"`
	Manifests     []referrer `json:"manifests"`
}

type referrer struct {
	digest.Descriptor
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

// listReferrers answers with a page of what refers to a digest, which need not exist.
func (h *handler) listReferrers(x *exchange) error {
	page, more, err := h.service.Referrers(x.ctx, x.p, x.Repository, registry.ReferrersQuery{
		Subject: x.Digest, ArtifactType: x.ArtifactType, After: x.After, Limit: x.pageSize(),
	})
	if err != nil {
		return err
	}
	answer := index{SchemaVersion: 2, MediaType: ocispec.MediaTypeImageIndex, Manifests: make([]referrer, len(page))}
	for i, m := range page {
		answer.Manifests[i] = referrer{descriptorOf(m), m.ArtifactType, m.Annotations}
	}
	next := url.Values{}
	if x.ArtifactType != "" {
		next.Set("artifactType", x.ArtifactType)
		x.w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	if more && len(page) > 0 {
		next.Set("n", strconv.Itoa(x.pageSize()))
		next.Set("last", page[len(page)-1].Digest.String())
		x.linkNext(referrersLocation(x.Repository, x.Digest), next)
	}
	return x.writeJSON(ocispec.MediaTypeImageIndex, answer)
}
