package auth

import (
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
	key := argonKey(password, salt, argonTime, argonMemory, argonThreads)
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads,
		enc.EncodeToString(salt), enc.EncodeToString(key)), nil
}

// CheckPassword compares a password with its stored form in constant time. Errors: ErrPassword, or what is wrong
// with the stored form.
func CheckPassword(stored, password string) error {
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
	if subtle.ConstantTimeCompare(argonKey(password, salt, time, memory, threads), want) != 1 {
		return ErrPassword
	}
	return nil
}

func argonKey(password string, salt []byte, time, memory uint32, threads uint8) []byte {
	passwordSlots <- struct{}{}
	defer func() { <-passwordSlots }()
	return argon2.IDKey([]byte(password), salt, time, memory, threads, argonKeyLen)
}

// secretPrefix begins every token, so that scanners can tell a leaked one.
const secretPrefix = "ghs_"

// NewSecret makes the secret of a token: 256 random bits in text form. It is shown once; HashSecret is stored.
func NewSecret() string {
	b := make([]byte, 32)
	rand.Read(b)
	return secretPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// HashSecret is what is stored of a token. A plain hash is enough: the secret has 256 random bits.
func HashSecret(secret string) [32]byte { return sha256.Sum256([]byte(secret)) }
