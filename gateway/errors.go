package gateway

import "errors"

// ErrNoKeys means that others would be served without being asked who they are.
var ErrNoKeys = errors.New("gateway: no API keys")
