package oci

import (
	"strconv"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// The paths that answers name. Parse reads each of them back.

func blobLocation(repository string, d digest.Digest) string {
	return "/v2/" + repository + "/blobs/" + d.String()
}

func uploadLocation(repository, id string) string {
	return "/v2/" + repository + "/blobs/uploads/" + id
}

func manifestLocation(repository string, d digest.Digest) string {
	return "/v2/" + repository + "/manifests/" + d.String()
}

func referrersLocation(repository string, subject digest.Digest) string {
	return "/v2/" + repository + "/referrers/" + subject.String()
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
