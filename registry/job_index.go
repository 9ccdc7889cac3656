package registry

import (
	"context"
)

// Which packs an admitted job pins is written in the transaction that stores it, so that the queued and running jobs of a version
// are found without reading every receipt. Jobs that an older program stored are read once: at the start of a newer one, and
// before it counts, since replicas of the older one may run beside it.

// indexBatch is how many of such jobs one transaction takes up.
const indexBatch = 200

// indexJobs takes up the jobs whose packs were not kept. It can be cut off anywhere and goes on where it was; several
// replicas may do it at once. When there are none it asks one question.
func (s *Service) indexJobs(ctx context.Context) error {
	for {
		var jobs []Job
		err := s.meta.View(ctx, func(tx Tx) (err error) {
			jobs, err = tx.UnindexedJobs(indexBatch)
			return err
		})
		if err != nil || len(jobs) == 0 {
			return err
		}
		for i := range jobs {
			if jobs[i].Pins, err = pinsOf(jobs[i]); err != nil {
				s.log.ErrorContext(ctx, "a job's receipt can't be read: the job is not found by what it uses", "job", jobs[i].ID, "err", err)
			}
		}
		err = s.always.Update(ctx, func(tx Tx) error {
			for _, job := range jobs {
				if err := tx.IndexJob(job); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}
