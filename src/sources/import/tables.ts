interface FollowedFileTable {
  tenant: string;
  path: string;
  device: string;
  inode: string;
  head: string;
  head_bytes: number;
  recorded: number;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    followed_file: FollowedFileTable;
  }
}
