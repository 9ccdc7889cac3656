package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// Parameters of argon2id for new password hashes (RFC 9106, second recommended option): memory in KiB.
const (
	argonTime    = 3
	argonMemory  = 64 * 1024
	argonThreads = 1
	argonKeyLen  = 32
	argonSaltLen = 16
)

// ErrPassword says that a password is not the account's.
var ErrPassword = errors.New("wrong password")

// passwordSlots bounds how many passwords are hashed at a time: each takes 64 MiB (design.md 9: two at a time).
var passwordSlots = make(chan struct{}, 2)

// MinPassword is the shortest password that an account may get, in bytes.
const MinPassword = 8

// HashPassword makes the stored form of a password: argon2id in the PHC text form.
func HashPassword(password string) (string, error) {
	if len(password) < MinPassword {
		return "", fmt.Errorf("a password has at least %d bytes, found %d", MinPassword, len(password))
	}
	salt := make([]byte, argonSaltLen)
	rand.Read(salt)
	key, err := argonKey(context.Background(), password, salt, argonTime, argonMemory, argonThreads)
	return format(salt, key), err
}

// format is the PHC text form.
func format(salt, key []byte) string {
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		enc.EncodeToString(salt), enc.EncodeToString(key))
}

// DummyHash is the stored form of a password that nobody has: comparing with it takes as long as with any other.
func DummyHash() string { return dummyHash }

var dummyHash = format(make([]byte, argonSaltLen), make([]byte, argonKeyLen))

// CheckPassword compares a password with its stored form in constant time, once its turn comes. Errors: ErrPassword, what is
// wrong with the stored form, or why the turn never came.
func CheckPassword(ctx context.Context, stored, password string) error {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return errors.New("stored password is not in the argon2id form")
	}
	var version int
	var memory, time uint32
	var threads uint8
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &time, &threads); err != nil {
		return fmt.Errorf("stored password: %w", err)
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return fmt.Errorf("stored password: salt: %w", err)
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(want) != argonKeyLen {
		return errors.New("stored password: malformed key")
	}
	got, err := argonKey(ctx, password, salt, time, memory, threads)
	if err != nil {
		return err
	}
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return ErrPassword
	}
	return nil
}

// argonKey waits for a slot and hashes.
func argonKey(ctx context.Context, password string, salt []byte, time, memory uint32, threads uint8) ([]byte, error) {
	select {
	case passwordSlots <- struct{}{}:
		defer func() { <-passwordSlots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return argon2.IDKey([]byte(password), salt, time, memory, threads, argonKeyLen), nil
}

// secretPrefix begins every token, so that scanners can tell a leaked one.
const secretPrefix = "ghs_"

// NewSecret makes the secret of a token: 256 random bits in text form. It is shown once; HashSecret is stored.
func NewSecret() string {
	b := make([]byte, 32)
	rand.Read(b)
	return secretPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// IsSecret reports whether a text has the form of a token's secret, and so is no password.
func IsSecret(text string) bool {
	body, ok := strings.CutPrefix(text, secretPrefix)
	b, err := base64.RawURLEncoding.DecodeString(body)
	return ok && err == nil && len(b) == 32
}

// HashSecret is what is stored of a token. A plain hash is enough: the secret has 256 random bits.
func HashSecret(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }
