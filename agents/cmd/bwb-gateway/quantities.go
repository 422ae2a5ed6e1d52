// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"bandwidthbroker/agents/internal/emulate"
)

// quantity is a flag of a number with a decimal prefix and a unit, kept as an exact integer.
type quantity struct {
	value   int64
	text    *regexp.Regexp
	typed   string // what --help calls it
	example string
}

const number = `^([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)`

func rate(bps int64) quantity {
	return quantity{bps, regexp.MustCompile(number + `(?:bits?|bps|b)?(?:/s)?$`), "rate", "500Mbit, 2.5Gbit or 800k (bit/s)"}
}

func size(bytes int64) quantity {
	return quantity{bytes, regexp.MustCompile(number + `(?:bytes?|b)?$`), "size", "1MB, 100k or 65536 (bytes)"}
}

func (q *quantity) Set(text string) error {
	found := q.text.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if found == nil {
		return fmt.Errorf("%q is no %s: write %s", text, q.typed, q.example)
	}
	exact, ok := new(big.Rat).SetString(found[1])
	scale := map[string]int64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}[found[2]]
	if !ok || !exact.Mul(exact, big.NewRat(scale, 1)).IsInt() || !exact.Num().IsInt64() {
		return fmt.Errorf("%q is no whole number of bits or bytes that makes sense", text)
	}
	q.value = exact.Num().Int64()
	return nil
}

func (q *quantity) String() string { return strconv.FormatInt(q.value, 10) }
func (q *quantity) Type() string   { return q.typed }

// share is a flag from 0 to 1, or in percent, kept in parts of a billion.
type share struct{ parts int64 }

func (s *share) Set(text string) error {
	plain, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	value, err := strconv.ParseFloat(plain, 64)
	if err != nil {
		return fmt.Errorf("%q is no share: write 0.001 or 0.1%%", text)
	}
	if percent {
		value /= 100
	}
	s.parts, err = emulate.Share(value)
	return err
}

func (s *share) String() string { return strconv.FormatFloat(float64(s.parts)/1e9, 'f', -1, 64) }
func (s *share) Type() string   { return "share" }
