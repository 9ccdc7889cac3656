package handover

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/webhook"
)

// maxAnswer is how many bytes of a platform's answer are read: it is shown to people. Only its status says anything to us.
const maxAnswer = 4 << 10

// Webhook delivers by a signed request.
type Webhook struct {
	client *webhook.Client
	base   string
}

// NewWebhook makes the deliverer to a target. base is the registry's public address.
func NewWebhook(t webhook.Target, base string) (*Webhook, error) {
	t.MaxAnswer, t.StatusOnly = maxAnswer, true
	client, err := webhook.New(t)
	return &Webhook{client, base}, err
}

// Deliver implements registry.HandoverDeliverer. 410 and 422 refuse an event for good; every other status but 2xx is tried again,
// no sooner than a Retry-After says.
func (w *Webhook) Deliver(ctx context.Context, m registry.HandoverMessage) error {
	body, err := documentOf(m, w.base).encode()
	if err != nil {
		return err
	}
	answer, err := w.client.Post(ctx, m.ID, "application/json", body)
	switch {
	case err != nil:
		return err
	case answer.OK():
		return nil
	case answer.Status == http.StatusGone, answer.Status == http.StatusUnprocessableEntity:
		return &registry.RefusedHandover{Reason: said(w.client.Host(), answer)}
	}
	return &registry.Error{Code: registry.Unavailable, Message: said(w.client.Host(), answer), RetryAfter: answer.RetryAfter}
}

// said is what a platform answered, for people.
func said(host string, a webhook.Answer) string {
	return fmt.Sprintf("%s answered %s: %.300q", host, strconv.Itoa(a.Status), a.Body)
}
