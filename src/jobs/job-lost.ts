/** The job is not this worker's any more: it was deleted, or another worker has taken it up. */
export class JobLost extends Error {
  constructor() {
    super('the job is gone, or another worker has taken it up');
    this.name = 'JobLost';
  }
}

/** Ends whatever is done for a job that is lost, and what finds it out. */
export function loseJob(stop: AbortController): never {
  const lost = new JobLost();
  stop.abort(lost);
  throw lost;
}
