package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
)

// maxBlob bounds what is read of one answer.
const maxBlob = 64 << 20

// pullPlain fetches a pack with nothing but HTTP, as any OCI client does, and proves it with sha256 and sf digest.
func pullPlain(d *demo) error {
	manifest, err := d.get("/v2/alice/grad-clip/manifests/1.2.0", "application/vnd.oci.image.manifest.v1+json")
	if err != nil {
		return err
	}
	if err := d.compare("manifest", d.digests["grad-clip manifest"], sum(manifest)); err != nil {
		return err
	}
	var doc struct {
		ArtifactType string `json:"artifactType"`
		Layers       []struct{ Digest, MediaType string }
		Annotations  map[string]string
	}
	if err := json.Unmarshal(manifest, &doc); err != nil {
		return err
	}
	fmt.Println("  artifactType " + doc.ArtifactType)
	if err := d.check(len(doc.Layers) == 1, "the manifest has %d layers", len(doc.Layers)); err != nil {
		return err
	}
	layer, err := d.get("/v2/alice/grad-clip/blobs/"+doc.Layers[0].Digest, "")
	if err != nil {
		return err
	}
	if err := d.compare("archive", doc.Layers[0].Digest, sum(layer)); err != nil {
		return err
	}
	if err := os.WriteFile(d.path("grad-clip.tar.gz"), layer, 0o644); err != nil {
		return err
	}
	for _, name := range []string{"content", "tree"} {
		if err := d.compare(name+" annotation", d.digests["grad-clip "+name], doc.Annotations["dev.gatehouse."+name+"-digest"]); err != nil {
			return err
		}
	}
	return d.says(0, []string{"digest", "grad-clip.tar.gz"}, d.digests["grad-clip content"], d.digests["grad-clip tree"])
}

// compare checks that two digests are one and says so.
func (d *demo) compare(what, want, got string) error {
	if err := d.check(want == got && want != "", "%s: %s was published, %s came back", what, want, got); err != nil {
		return err
	}
	fmt.Printf("  %s %s, as published\n", what, got)
	return nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}

// get makes one request of the OCI protocol.
func (d *demo) get(path, accept string) ([]byte, error) {
	fmt.Println("GET " + d.address + path)
	req, err := http.NewRequestWithContext(d.ctx, http.MethodGet, d.address+path, nil)
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth("alice", d.alice)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBlob))
	if err != nil {
		return nil, err
	}
	return body, d.check(res.StatusCode == http.StatusOK, "GET %s: %s\n%s", path, res.Status, body)
}
