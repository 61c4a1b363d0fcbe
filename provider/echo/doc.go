// Package echo answers without any network, for a broker that has no provider
// key yet: it repeats the last user message behind a loud label, and says of its
// token counts that they are estimated.
package echo
