// The C header alone, from the installed package.
#include <logpjit/logpjit.h>
#include <math.h>
#include <stdio.h>

int main(void) {
  logpjit_options options = LOGPJIT_OPTIONS_INIT;
  options.device = "cpu";
  logpjit_runtime* runtime = NULL;
  if (logpjit_runtime_create(&options, &runtime) != LOGPJIT_OK) {
    printf("failed: %s\n", logpjit_last_error());
    return 1;
  }
  const float logits[4] = {0, 0, 0, 0};
  float entropy[1] = {0};
  logpjit_row_forward call = LOGPJIT_ROW_FORWARD_INIT;
  call.logits = (logpjit_tensor){.data = logits,
                                 .dtype = LOGPJIT_FP32,
                                 .rank = 2,
                                 .shape = {1, 4},
                                 .strides = {4, 1}};
  call.entropy = (logpjit_tensor){.data = entropy,
                                  .dtype = LOGPJIT_FP32,
                                  .rank = 1,
                                  .shape = {1},
                                  .strides = {1}};
  const int status = logpjit_forward(runtime, &call, NULL);
  printf("%s %s: %.7f, by hand %.7f\n", logpjit_version(),
         logpjit_status_name(status), (double)entropy[0], log(4.0));
  logpjit_runtime_destroy(runtime);
  return status == LOGPJIT_OK && fabs((double)entropy[0] - log(4.0)) < 1e-6 ? 0
                                                                            : 1;
}
