// SPDX-License-Identifier: Apache-2.0

// Package pacing decides how fast connections may send so that they follow a booked schedule. It is pure: time and counts
// are arguments, rates are bit/s, times and durations µs, volumes bytes.
//
// An Account compares what was sent with what is booked, and allows a transfer that is behind to go a little faster. Around
// it are two loops: a Pacer, which the agent's own sender asks before each write, and package wrap's, which looks at
// the connections of a user's command every 40 ms. A Meter measures what a sender reaches. MaxMin divides a rate
// between connections. A Limiter is what has the kernel hold them to it.
package pacing
