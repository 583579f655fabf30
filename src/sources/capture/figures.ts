/** How far capture is behind the source. */
export class CaptureFigures {
  /** Bytes of the source's log that are not recorded yet. */
  lagBytes = 0;
  /** Milliseconds since the commit that was recorded last, while there is something to record; otherwise 0. */
  lagMilliseconds = 0;
  /** Bytes of its log that the source keeps for the slot. */
  slotBytes = 0;
  /** Bytes that the source may still write before it drops what the slot needs. Undefined: it never does. */
  slotSafeBytes: number | undefined;
}
