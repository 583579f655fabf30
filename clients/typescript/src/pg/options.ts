export interface AttributeOptions {
  /** False: only the setting is sent, which triggers read, and not the message for capture. Default true. */
  readonly capture?: boolean;
}
