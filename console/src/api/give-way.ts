/** Lets the browser answer keys and draw before long work goes on. A timer would wait longer, and much longer in a tab that nobody sees. */
export function giveWay(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}
