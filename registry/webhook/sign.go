// Package webhook sends signed requests to addresses that an administrator configured, and asks one of them what the platform
// holds (docs/resolver.md).
//
// The contract:
//   - A request is a POST signed as the Standard Webhooks specification says: the headers webhook-id, webhook-timestamp
//     (seconds since 1970) and webhook-signature, `v1,` and the base64 of HMAC-SHA256 over `<id>.<timestamp>.<body>`. A
//     receiver refuses what is not signed so, and what is older than it likes; an id that it has seen was delivered again.
//   - A request takes no longer than its timeout, whatever the other side does, and an answer no more memory than its bound.
//   - Nothing is followed: a redirect is an answer like any other. No proxy of the environment is used, nothing is
//     decompressed, no cookie is kept.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed request.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// minKey is the least number of bytes of a key.
const minKey = 16

// Key reads a secret as it stands in a configuration: `whsec_` and base64, or any other text, which is the key itself.
func Key(secret string) ([]byte, error) {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, errors.New("what follows whsec_ is not base64")
		}
	}
	if len(key) < minKey {
		return nil, fmt.Errorf("the secret has %d bytes, at least %d are needed", len(key), minKey)
	}
	return key, nil
}

// Sign is the webhook-signature of a body that is sent under an id at a time.
func Sign(key []byte, id string, at time.Time, body []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// Verify checks what a receiver got: the three headers' values and the body. age is how far the time may lie from now.
func Verify(key []byte, id, timestamp, signatures string, body []byte, now time.Time, age time.Duration) error {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return errors.New("the timestamp is no number")
	}
	at := time.Unix(seconds, 0)
	if away := now.Sub(at).Abs(); away > age {
		return fmt.Errorf("the timestamp is %s away, at most %s is accepted", away.Round(time.Second), age)
	}
	want := Sign(key, id, at, body)
	for given := range strings.FieldsSeq(signatures) {
		if hmac.Equal([]byte(given), []byte(want)) {
			return nil
		}
	}
	return errors.New("no signature is that of the key")
}
