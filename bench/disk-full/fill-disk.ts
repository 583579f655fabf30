import { open } from 'node:fs/promises';

/** Writes into the file until there is no room for 4 KiB more. */
export async function fillDisk(path: string): Promise<void> {
  const file = await open(path, 'a');
  try {
    for (let size = 1024 * 1024; size >= 4096; ) {
      const isWritten = await file.write(Buffer.alloc(size)).then(
        ({ bytesWritten }) => bytesWritten === size,
        () => false,
      );
      if (!isWritten) size /= 2;
    }
  } finally {
    await file.close();
  }
}
