package tclinux_test

import (
	"fmt"
	"testing"
	"time"

	"bandwidthbroker/agents/internal/tclinux/tctest"
)

func TestCost(t *testing.T) {
	n := tctest.NewNamespace(t, "cost")
	there := tctest.NewNamespace(t, "")
	n.Join(there)
	s := open(t, kernelIn(t, n))
	defer s.Close()
	for i := range uint16(50) {
		want(t, s, fmt.Sprint(i), to(near, 1e6, 1000+i, 1000+i))
	}
	begin := time.Now()
	sync(t, s)
	t.Log("50 made in", time.Since(begin))
	begin = time.Now()
	for i := range uint16(100) {
		want(t, s, "7", to(near, 1e6+int64(i)*8, 1007, 1007))
		sync(t, s)
	}
	t.Log("one step", time.Since(begin)/100)
	begin = time.Now()
	for range 1000 {
		reading(t, s, "7")
	}
	t.Log("one reading", time.Since(begin)/1000)
}
