package fs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
)

// uploadPath is where a session lies. The Store lets only plain names through.
func uploadPath(id string) string { return path.Join(uploadsDir, id) }

// CreateUpload implements blobstore.Backend. The empty session becomes durable with its first bytes.
func (f *folder) CreateUpload(_ context.Context, id string) error {
	file, err := f.disk.create(uploadPath(id), stagingMode)
	if err != nil {
		return classify(err)
	}
	return file.Close()
}

// StatUpload implements blobstore.Backend.
func (f *folder) StatUpload(_ context.Context, id string) (blobstore.UploadState, error) {
	info, err := f.root.Lstat(uploadPath(id))
	if err != nil {
		return blobstore.UploadState{}, err
	}
	return blobstore.UploadState{Size: info.Size()}, nil
}

// OpenUpload implements blobstore.Backend.
func (f *folder) OpenUpload(_ context.Context, id string) (registry.Blob, int64, error) {
	return f.open(uploadPath(id))
}

// AppendUpload implements blobstore.Backend.
func (f *folder) AppendUpload(_ context.Context, id string) (blobstore.Staging, blobstore.UploadState, error) {
	name := uploadPath(id)
	file, err := f.disk.openFile("open", name, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrPermission) && f.root.Chmod(name, stagingMode) == nil { // a commit that failed half-way made it read-only
		file, err = f.disk.openFile("open", name, os.O_WRONLY|os.O_APPEND, 0)
	}
	if err != nil {
		return nil, blobstore.UploadState{}, classify(err)
	}
	info, err := file.f.Stat()
	if err != nil {
		return nil, blobstore.UploadState{}, errors.Join(err, file.Close())
	}
	return &staging{folder: f, file: file, fresh: info.Size() == 0}, blobstore.UploadState{Size: info.Size()}, nil
}

// StoreUpload implements blobstore.Backend.
func (f *folder) StoreUpload(_ context.Context, id string, d digest.Descriptor, _ string) error {
	name := uploadPath(id)
	file, err := f.disk.openFile("open", name, os.O_RDONLY, 0)
	if err != nil {
		return classify(err)
	}
	err = file.chmod(blobMode)
	if err == nil {
		err = file.sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return classify(err)
	}
	return classify(f.place(name, d.Digest))
}

// RemoveUpload implements blobstore.Backend.
func (f *folder) RemoveUpload(_ context.Context, id string) error {
	return classify(f.remove(uploadPath(id)))
}

// staging is a session open for writing.
type staging struct {
	folder *folder
	file   *file
	fresh  bool // it held nothing when it was opened: its folder was not synced
}

func (s *staging) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	return n, classify(err)
}

func (s *staging) Truncate(size int64) error { return s.file.truncate(size) }

func (s *staging) Sync() (string, error) {
	err := s.file.sync()
	if err == nil && s.fresh {
		err = s.folder.syncDir(uploadsDir)
	}
	return "", classify(err)
}

func (s *staging) Close() error { return s.file.Close() }
