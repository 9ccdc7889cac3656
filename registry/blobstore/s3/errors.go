package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// How long a client should wait when the store can't serve it.
const (
	busyWait = 5 * time.Second
	fullWait = time.Minute
)

// fullCodes are how stores say that they have no room.
var fullCodes = map[string]bool{
	"InsufficientStorage": true, "XMinioStorageFull": true, "QuotaExceeded": true, "XMinioAdminBucketQuotaExceeded": true,
}

// deniedCodes are how stores say that our credentials are wrong or may not do this.
var deniedCodes = map[string]bool{
	"AccessDenied": true, "InvalidAccessKeyId": true, "SignatureDoesNotMatch": true, "AllAccessDisabled": true,
	"InvalidToken": true, "XAdminUserNotFound": true, "ExpiredToken": true, "RequestTimeTooSkewed": true, "AccountProblem": true,
}

// classify gives an answer of the store, or its silence, the code that our caller needs. What is absent wraps
// fs.ErrNotExist; a condition that was not met wraps fs.ErrExist.
func classify(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if _, ours := errors.AsType[*registry.Error](err); ours {
		return err
	}
	answer, answered := errors.AsType[minio.ErrorResponse](err)
	switch {
	case !answered:
		return unavailable("the blob store does not answer", err, busyWait)
	case answer.Code == "NoSuchBucket":
		return fmt.Errorf("the bucket of the blob store does not exist: %w", err)
	case deniedCodes[answer.Code], answer.StatusCode == http.StatusForbidden:
		return fmt.Errorf("the blob store refuses our credentials (%s): %w", answer.Code, err)
	case answer.StatusCode == http.StatusNotFound, answer.Code == "NoSuchKey", answer.Code == "NoSuchUpload":
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	case answer.StatusCode == http.StatusPreconditionFailed, answer.Code == "PreconditionFailed", answer.Code == "ConditionalRequestConflict":
		return fmt.Errorf("%w: %w", fs.ErrExist, err)
	case fullCodes[answer.Code], answer.StatusCode == http.StatusInsufficientStorage:
		return unavailable("the blob store is full", err, fullWait)
	case answer.Code == "EntityTooLarge":
		return &registry.Error{Code: registry.TooLarge, Message: "the blob store takes no object of this size", Err: err}
	case answer.Code == "SlowDown", answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode == http.StatusServiceUnavailable,
		answer.StatusCode == http.StatusConflict: // OperationAborted: another request works on the object
		return unavailable("the blob store is busy", err, busyWait)
	case answer.StatusCode >= 500, answer.StatusCode == http.StatusOK, answer.Code == "RequestTimeout", answer.Code == "InternalError":
		return unavailable("the blob store failed", err, busyWait)
	}
	return fmt.Errorf("blob store: %w", err)
}

// unavailable is a failure that the next try may not meet.
func unavailable(message string, cause error, wait time.Duration) error {
	return &registry.Error{Code: registry.Unavailable, Message: message, Err: cause, RetryAfter: wait}
}

// isAbsent reports whether a classified error says that the object is not there.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
