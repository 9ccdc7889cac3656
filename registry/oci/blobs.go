package oci

import (
	"net/http"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// blobMediaType is the Content-Type of every blob: what a blob is stands in the manifest that names it.
const blobMediaType = "application/octet-stream"

func (h *handler) getBlob(x *exchange) error {
	elsewhere, err := h.service.RedirectBlob(x.ctx, x.p, x.Repository, x.Digest)
	if err != nil {
		return err
	}
	if elsewhere != "" && x.hasIt(etagOf(x.Digest)) {
		return h.headBlob(x) // the store's tags are others
	}
	if elsewhere != "" {
		header := x.w.Header()
		header.Set("Location", elsewhere)
		header.Set("Docker-Content-Digest", x.Digest.String())
		header.Set("Cache-Control", "no-store") // the address is good for minutes
		x.w.WriteHeader(http.StatusTemporaryRedirect)
		return nil
	}
	blob, desc, err := h.service.OpenBlob(x.ctx, x.p, x.Repository, x.Digest)
	if err != nil {
		return err
	}
	defer blob.Close()
	desc.MediaType = blobMediaType
	return h.serveContent(x, desc, blob)
}

func (h *handler) headBlob(x *exchange) error {
	desc, err := h.service.StatBlob(x.ctx, x.p, x.Repository, x.Digest)
	if err != nil {
		return err
	}
	desc.MediaType = blobMediaType
	return h.serveContent(x, desc, nil)
}

func (h *handler) deleteBlob(x *exchange) error {
	if err := h.service.DeleteBlob(x.ctx, x.p, x.Repository, x.Digest); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusAccepted)
	return nil
}

// putBlob takes a whole blob in one POST.
func (h *handler) putBlob(x *exchange) error {
	desc, err := h.service.PutBlob(x.ctx, x.p, x.Repository, x.Digest, h.wholeBody(x))
	if err != nil {
		return err
	}
	x.blobCreated(desc.Digest)
	return nil
}

// mountBlob links a blob of another repository, or starts an upload where that can't be.
func (h *handler) mountBlob(x *exchange) error {
	ok, err := h.service.MountBlob(x.ctx, x.p, x.Repository, x.From, x.Digest)
	if err != nil {
		return err
	}
	if !ok {
		return h.startUpload(x)
	}
	x.blobCreated(x.Digest)
	return nil
}

func (h *handler) startUpload(x *exchange) error {
	u, err := h.service.StartUpload(x.ctx, x.p, x.Repository)
	if err != nil {
		return err
	}
	x.uploadState(u.ID, 0)
	x.w.WriteHeader(http.StatusAccepted)
	return nil
}

func (h *handler) uploadStatus(x *exchange) error {
	size, err := h.service.UploadStatus(x.ctx, x.p, x.Repository, x.Upload)
	if err != nil {
		return err
	}
	x.uploadState(x.Upload, size)
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *handler) appendUpload(x *exchange) error {
	chunk, err := h.chunk(x)
	if err != nil {
		return err
	}
	size, err := h.service.AppendUpload(x.ctx, x.p, x.Repository, x.Upload, chunk)
	if err != nil {
		return h.withOffset(x, err)
	}
	x.uploadState(x.Upload, size)
	x.w.WriteHeader(http.StatusAccepted)
	return nil
}

func (h *handler) finishUpload(x *exchange) error {
	chunk, err := h.chunk(x)
	if err != nil {
		return err
	}
	desc, err := h.service.FinishUpload(x.ctx, x.p, x.Repository, x.Upload, chunk, x.Digest)
	if err != nil {
		return h.withOffset(x, err)
	}
	x.blobCreated(desc.Digest)
	return nil
}

func (h *handler) cancelUpload(x *exchange) error {
	if err := h.service.CancelUpload(x.ctx, x.p, x.Repository, x.Upload); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// withOffset tells a client that sent a chunk out of order where the upload really stands.
func (h *handler) withOffset(x *exchange, err error) error {
	if registry.CodeOf(err) != registry.RangeInvalid {
		return err
	}
	size, statusErr := h.service.UploadStatus(x.ctx, x.p, x.Repository, x.Upload)
	if statusErr != nil {
		return statusErr
	}
	x.uploadState(x.Upload, size)
	return err
}

// uploadState sets the headers that say where an upload goes on. An empty one has no last byte; "0-0" is what clients
// know for it.
func (x *exchange) uploadState(id string, size int64) {
	x.w.Header().Set("Location", uploadLocation(x.Repository, id))
	x.w.Header().Set("Range", "0-"+itoa(max(size-1, 0)))
	x.w.Header().Set("Docker-Upload-Uuid", id)
}

func (x *exchange) blobCreated(d digest.Digest) {
	x.w.Header().Set("Location", blobLocation(x.Repository, d))
	x.w.Header().Set("Docker-Content-Digest", d.String())
	x.w.WriteHeader(http.StatusCreated)
}
