// SPDX-License-Identifier: Apache-2.0

// Submit, a refusal, a patch of one field, cancel: with a client that oapi-codegen made of the contract.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"bandwidthbroker/contract/generated"
)

func main() {
	log.SetFlags(log.Lshortfile)
	ctx := context.Background()
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("BWB_TOKEN"))
		return nil
	}
	broker, err := generated.NewClientWithResponses(os.Getenv("BWB_URL"), generated.WithRequestEditorFn(authorize))
	must(err)
	volume, priority, paths, planner, label := int64(1_000_000_000), int64(7), int64(2), "fbls", "go"
	request := generated.TransferRequest{
		Source: "A", Destination: "B", VolumeBytes: &volume, Priority: &priority, Paths: &paths, Planner: &planner, Label: &label,
	}

	submitted, err := broker.SubmitTransferWithResponse(ctx, nil, request)
	must(err)
	transfer := submitted.JSON201
	if transfer == nil || !strings.HasSuffix(submitted.HTTPResponse.Header.Get("Location"), transfer.ID) {
		log.Fatalf("submit: %s", submitted.Body)
	}

	tooMuch, more := request, int64(1_000_000_000_000_000)
	tooMuch.VolumeBytes, tooMuch.Deadline = &more, transfer.Plan.Finish
	refused, err := broker.SubmitTransferWithResponse(ctx, nil, tooMuch)
	must(err)
	problem := refused.ApplicationProblemJSON409
	if problem == nil || problem.Binding.Link != "L1" || !offersDeadline(problem.CounterOffers) {
		log.Fatalf("refusal: %s", refused.Body)
	}

	patched, tag := "patched", submitted.HTTPResponse.Header.Get("ETag")
	change := generated.TransferChange{Label: &patched}
	answer, err := broker.ChangeTransferWithResponse(ctx, transfer.ID, &generated.ChangeTransferParams{IfMatch: &tag}, change)
	must(err)
	if answer.JSON200 == nil {
		log.Fatalf("patch: %s", answer.Body)
	}
	changed, err := answer.JSON200.AsTransfer()
	must(err)
	if *changed.Label != patched || *changed.VolumeBytes != volume || changed.Priority != priority || changed.Paths != paths || changed.Planner != planner {
		log.Fatalf("patch: %s", answer.Body)
	}

	ended, err := broker.CancelTransferWithResponse(ctx, transfer.ID, nil)
	must(err)
	canceled, err := ended.JSON200.AsTransfer()
	must(err)
	if canceled.State != generated.TransferStateCANCELED {
		log.Fatalf("cancel: %s", ended.Body)
	}
	fmt.Println(transfer.ID)
}

func offersDeadline(offers *[]generated.CounterOffer) bool {
	for _, offer := range *offers {
		if offer.Kind == generated.SmallestDeadline && offer.Deadline != nil {
			return true
		}
	}
	return false
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
