// Package sdktest runs the official Go SDK against the gateway.
// gateway/sdktest/run starts both.
package sdktest
