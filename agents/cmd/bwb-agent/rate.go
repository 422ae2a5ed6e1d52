// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// rate is a flag in bit/s, written as 1Mbit, 2.5Gbit/s, 800k or plain bits.
type rate struct{ bps int64 }

var rateText = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:bits?|bps|b)?(?:/s)?$`)

func (r *rate) Set(text string) error {
	m := rateText.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return fmt.Errorf("%q is not a rate: want 1Mbit, 2.5Gbit, 800kbit or 0", text)
	}
	number, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return err
	}
	scale := map[string]float64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}[m[2]]
	if number*scale > 1e15 {
		return fmt.Errorf("%q is more than 1000 Tbit/s", text)
	}
	r.bps = int64(number * scale)
	return nil
}

func (r *rate) String() string {
	if r.bps < 0 {
		return ""
	}
	return strconv.FormatInt(r.bps, 10)
}

func (r *rate) Type() string { return "rate" }
