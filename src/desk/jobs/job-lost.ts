/** The worker no longer holds the job: a client deleted it, or another worker took it. */
export class JobLost extends Error {
  constructor() {
    super('the job is gone, or another worker has taken it up');
    this.name = 'JobLost';
  }
}

/** Stops all work for a lost job, and throws in the code that noticed the loss. */
export function loseJob(stop: AbortController): never {
  const lost = new JobLost();
  stop.abort(lost);
  throw lost;
}
