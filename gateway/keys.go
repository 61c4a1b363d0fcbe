package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// keyPrefix begins every key, so that tools that look for lost secrets find it.
const keyPrefix = "llmbus_"

// noTenant stands in a list of keys for a fleet without tenants.
const noTenant = "-"

// Keys says whose an API key is. It holds hashes only. The keys are random and
// long, so that a plain hash is enough.
type Keys struct{ list []key }

var _ Keyring = (*Keys)(nil)

type key struct {
	hash   [sha256.Size]byte
	tenant string
}

// NewKey makes a key for a tenant, and the line that ParseKeys reads it by.
func NewKey(tenant string) (secret, line string, err error) {
	if tenant == "" {
		tenant = noTenant
	}
	secret = keyPrefix + rand.Text() + rand.Text()
	hash := sha256.Sum256([]byte(secret))
	line = tenant + " sha256:" + hex.EncodeToString(hash[:])
	_, err = ParseKeys(line)
	return secret, line, err
}

var tenantName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ParseKeys reads entries "<tenant> sha256:<64 hex digits>", separated by line
// ends or commas. Empty lines and what follows a # are left out. A tenant may
// have several keys; "-" is a fleet without tenants. At least one key must be
// there.
func ParseKeys(text string) (*Keys, error) {
	keys := &Keys{}
	for i, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == ',' }) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		k, err := parseKey(fields)
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		keys.list = append(keys.list, k)
	}
	if len(keys.list) == 0 {
		return nil, fmt.Errorf("there is no key; make one with broker gateway key <tenant>")
	}
	return keys, nil
}

func parseKey(fields []string) (k key, err error) {
	if len(fields) != 2 {
		return k, fmt.Errorf("must be <tenant> sha256:<hex>, as broker gateway key prints it")
	}
	if k.tenant = fields[0]; !tenantName.MatchString(k.tenant) {
		return k, fmt.Errorf("the tenant must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
	}
	if k.tenant == noTenant {
		k.tenant = ""
	}
	digits, ok := strings.CutPrefix(fields[1], "sha256:")
	hash, err := hex.DecodeString(digits)
	if !ok || err != nil || len(hash) != sha256.Size {
		return k, fmt.Errorf("the key must be sha256: and 64 hex digits, never the key itself; broker gateway key makes both")
	}
	copy(k.hash[:], hash)
	return k, nil
}

// Fit reports why a fleet could not serve a key: where requests have tenants
// each must have one, and elsewhere none.
func (k *Keys) Fit(tenants bool) error {
	for _, key := range k.list {
		switch {
		case tenants && key.tenant == "":
			return fmt.Errorf("there is a key without a tenant, and the workers have LLMBUS_TENANTS: name a tenant in place of -")
		case !tenants && key.tenant != "":
			return fmt.Errorf("there is a key of the tenant %s, and the workers have no LLMBUS_TENANTS: set it, or name - in place of the tenant", key.tenant)
		}
	}
	return nil
}

// Len is the number of keys.
func (k *Keys) Len() int { return len(k.list) }

// Tenant returns whose key it is. It takes the same time for every key.
func (k *Keys) Tenant(secret string) (tenant string, ok bool) {
	hash, found := sha256.Sum256([]byte(secret)), -1
	for i := range k.list {
		same := subtle.ConstantTimeCompare(hash[:], k.list[i].hash[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return "", false
	}
	return k.list[found].tenant, true
}
