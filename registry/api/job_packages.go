package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// StartPackage serves POST /api/submissions/uploads {digest, size}; the digest is hex without a prefix (wire.md 6.2).
func (a *API) StartPackage(c *gin.Context) error {
	var in struct {
		Digest string `json:"digest"`
		Size   int64  `json:"size"`
	}
	if err := decode(c, &in); err != nil {
		return err
	}
	d, err := digest.Parse("sha256:" + in.Digest)
	if err != nil {
		return registry.Errorf(registry.Invalid, "digest: %w", err)
	}
	u, token, err := a.svc.StartPackage(c.Request.Context(), caller(c), digest.Descriptor{Digest: d, Size: in.Size})
	if err != nil {
		return err
	}
	c.JSON(http.StatusCreated, gin.H{"id": u.ID, "token": token, "expires_at": stamp(u.ExpiresAt)})
	return nil
}

// The headers of an upload that is made piece by piece. They are those of resumable uploads in general, so that a client
// library finds its names.
const (
	uploadToken  = "X-Upload-Token"
	uploadOffset = "Upload-Offset"
	uploadLength = "Upload-Length"
)

// packageSource is the answer to an upload, which the client repeats as `source`.
type packageSource struct {
	Upload string        `json:"upload"`
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size"`
}

// PutPackage serves PUT /api/submissions/uploads/{id}.
func (a *API) PutPackage(c *gin.Context) error {
	u, err := a.svc.PutPackage(c.Request.Context(), caller(c), c.Param("id"), c.GetHeader(uploadToken), c.Request.Body)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, packageSource{Upload: u.ID, Digest: u.Want.Digest, Size: u.Want.Size})
	return nil
}

// AppendPackage serves PATCH /api/submissions/uploads/{id}: more bytes, at the Upload-Offset that the upload has come to. The
// answer says how far it is; with the last byte it is that of PutPackage.
func (a *API) AppendPackage(c *gin.Context) error {
	offset, err := strconv.ParseInt(c.GetHeader(uploadOffset), 10, 64)
	if err != nil || offset < 0 {
		return registry.Errorf(registry.Invalid, "%s: %.40q is no number of bytes", uploadOffset, c.GetHeader(uploadOffset))
	}
	u, held, err := a.svc.AppendPackage(c.Request.Context(), caller(c), c.Param("id"), c.GetHeader(uploadToken), offset, c.Request.Body)
	if err != nil {
		return err
	}
	tellOffset(c, u, held)
	if !u.Stored {
		c.Status(http.StatusNoContent)
		return nil
	}
	c.JSON(http.StatusOK, packageSource{Upload: u.ID, Digest: u.Want.Digest, Size: u.Want.Size})
	return nil
}

// PackageOffset serves HEAD /api/submissions/uploads/{id}: how far the upload has come.
func (a *API) PackageOffset(c *gin.Context) error {
	u, held, err := a.svc.PackageOffset(c.Request.Context(), caller(c), c.Param("id"), c.GetHeader(uploadToken))
	if err != nil {
		return err
	}
	tellOffset(c, u, held)
	c.Status(http.StatusNoContent)
	return nil
}

func tellOffset(c *gin.Context, u registry.PackageUpload, held int64) {
	c.Header(uploadOffset, strconv.FormatInt(held, 10))
	c.Header(uploadLength, strconv.FormatInt(u.Want.Size, 10))
	c.Header("Cache-Control", "no-store")
}

// GetPackageOf serves GET /api/jobs/{id}/package: the bytes that the receipt pins.
func (a *API) GetPackageOf(c *gin.Context) error {
	job, blob, err := a.svc.JobPackage(c.Request.Context(), caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	defer blob.Close()
	h := c.Writer.Header()
	h.Set("Content-Type", job.Package.MediaType)
	h.Set("ETag", strconv.Quote(job.Package.Digest.String()))
	http.ServeContent(c.Writer, c.Request, "", time.Time{}, blob)
	return nil
}
