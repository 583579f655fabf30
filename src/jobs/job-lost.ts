/** The job is not this worker's any more: it was deleted, or another worker has taken it up. */
export class JobLost extends Error {
  constructor() {
    super('the job is gone, or another worker has taken it up');
    this.name = 'JobLost';
  }
}
