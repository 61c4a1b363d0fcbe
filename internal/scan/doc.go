// Package scan reads JSON in one pass: it checks a text and then walks its parts
// without decoding what nobody asked for. Requests carry long prompts and streams
// carry thousands of small events; a decoder that reads every byte several times
// would cost more than all the rest of the bus. What is rare is left to
// encoding/json.
//
// Check, Members and Elements are for texts that may hold anything. A Cursor is
// for those whose form is known, and reads and checks them at once; a Form is for
// many of these in a row.
package scan
