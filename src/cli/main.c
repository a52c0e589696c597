/* SPDX-License-Identifier: Apache-2.0 */
/* The program `leeway`. The only file that ends the process. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return lw_cli_main(argc, argv);
}
