"""How long a step takes with a team: a few steps are timed, and leave no trace."""

import statistics
import time

LEAST_TO_MEASURE = 20  # remaining steps: with fewer, timing some is not worth it
MOST_REHEARSALS, REHEARSAL_SECONDS = 6, 0.5


def seconds_per_step(trainer, batches, team):
    """The median of a few steps that change only the gradients, which every step clears."""

    def rehearse(member):
        seconds = []
        with trainer.sharing(member, batches) as share:
            batch = batches.batch(trainer.step)
            while len(seconds) < 2 or (len(seconds) < MOST_REHEARSALS and sum(seconds) < REHEARSAL_SECONDS):
                started = time.perf_counter()
                trainer.optimizer.zero_grad()
                for part, weight in share.pieces(batch):
                    trainer.objective.forward(part)
                    trainer.objective.backward(weight)
                member.total(0.0)
                member.add_gradients(trainer.optimizer)
                member.updated(trainer.optimizer)
                seconds += member.total(time.perf_counter() - started)  # the same for all: they stop together
        return statistics.median(seconds[1:]) / member.size  # the first step warms up

    with trainer.state.restored():
        trainer.model.train()
        return team.run(trainer.optimizer, rehearse)
