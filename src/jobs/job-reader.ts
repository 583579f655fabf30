/** Who reads jobs. Without a changelog scope, nothing that tells of the change history (contract 8). */
export interface JobReader {
  readonly tenant: string;
  readonly readsHistory: boolean;
}
