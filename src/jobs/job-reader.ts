/**
 * The reader of jobs. Without a changelog scope the reader sees nothing that tells of the change history (contract 8).
 */
export interface JobReader {
  readonly tenant: string;
  readonly readsHistory: boolean;
}
