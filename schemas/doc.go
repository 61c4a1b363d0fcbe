// Package schemas holds the JSON Schema (draft 2020-12) of every message on the
// wire, as text: what workers publish of them, and what the conformance kit
// judges by.
package schemas
