/** The reader of jobs (contract 8). */
export interface JobReader {
  readonly tenant: string;
  readonly clientId: string;
  /** Without a changelog scope the reader sees nothing that tells of the change history. */
  readonly readsHistory: boolean;
  /** Without a scope for jobs the reader sees the exports of its own client alone. */
  readonly seesAll: boolean;
}
